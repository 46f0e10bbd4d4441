#pragma once

#include <levin/trainer/strategy.h>

namespace levin {

/// One process on one device.
class SingleDevice : public Strategy {
 public:
  explicit SingleDevice(Device device) : device_(device) {}
  std::string name() const override { return "single"; }
  Device device() const override { return device_; }
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  int local_rank() const override { return 0; }
  int node_rank() const override { return 0; }
  void setup(nn::Module& module) override { module.to(device_); }
  Batch to_device(Batch batch) const override {
    for (Tensor& t : batch.tensors) t = t.to(device_);
    return batch;
  }
  void share_buffers(nn::Module&) override {}
  void reduce_in_backward(const std::vector<Parameter>&) override {}
  void finish_reduction(const std::vector<Parameter>&) override {}
  double reduce(double value, ReduceOp) override { return value; }
  Tensor reduce(const Tensor& value, ReduceOp) override { return value; }
  Tensor broadcast(const Tensor& value, int) override { return value; }
  StateMap broadcast(const StateMap& values, int) override { return values; }
  Tensor all_gather(const Tensor& value, bool sync_grads) override { return sync_grads ? value : value.detach(); }
  void barrier() override {}
  std::vector<StateMap> gather(const StateMap& own) override { return {own}; }
  void any(std::span<std::uint8_t>) override {}
  void abort(const std::string&) override {}

 private:
  Device device_;
};

}  // namespace levin
