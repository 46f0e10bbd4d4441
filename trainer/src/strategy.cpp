#include <levin/core/config.h>
#include <levin/kernels/cuda.h>
#include <levin/trainer/strategy.h>

#include <fmt/format.h>

#include <string_view>

#include "legacy_options.h"

namespace levin {
namespace {

/// One process on one device.
class SingleDevice final : public Strategy {
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
  void no_sync(bool) override {}
  void finish_reduction() override {}
  double reduce(double value, ReduceOp) override { return value; }
  Tensor reduce(const Tensor& value, ReduceOp) override { return value; }
  Tensor broadcast(const Tensor& value, int) override { return value; }
  StateMap broadcast(const StateMap& values, int) override { return values; }
  Tensor all_gather(const Tensor& value, bool sync_grads) override { return sync_grads ? value : value.detach(); }
  void barrier() override {}

 private:
  Device device_;
};

/// Whether "auto" means a GPU: not in the emulator, where it would be the slowest choice.
bool prefers_cuda() { return std::string_view(LEVIN_CUDA_FLAVOUR) == "ON" && cuda::is_available(); }

}  // namespace

Device choose_device(const std::string& accelerator, const DeviceList& devices) {
  if (accelerator == "cuda" || accelerator == "gpu" || (accelerator == "auto" && prefers_cuda())) {
    if (!cuda::is_available())
      throw UsageError(fmt::format("--accelerator {}: {}", accelerator, cuda::why_unavailable()));
    const auto indices = devices.indices(cuda::device_count(), "cuda");
    if (indices.size() > 1)
      throw UsageError(
          fmt::format("--devices {}: a run uses one cuda device here. Use --devices 1, or an index as "
                      "--devices [0].",
                      devices.text()));
    return cuda(indices[0]);
  }
  if (const auto instead = legacy_accelerator(accelerator))
    throw UsageError(fmt::format("--accelerator {}: {}", accelerator, *instead));
  if (accelerator != "auto" && accelerator != "cpu")
    throw UsageError(fmt::format("--accelerator {}: there are cpu and cuda. Use one of them, or auto.", accelerator));
  DeviceList::parse(devices.text());
  if (!devices.is_auto() && devices.text() != "1" && devices.text() != "-1")
    throw UsageError(
        fmt::format("--devices {}: a run uses one device here, the CPU. Use --devices 1; "
                    "--threads sets how many cores it takes.",
                    devices.text()));
  return kCpu;
}

std::unique_ptr<Strategy> make_strategy(const std::string& name, Device device) {
  if (name == "auto" || name == "single") return std::make_unique<SingleDevice>(device);
  if (const auto instead = legacy_strategy(name)) throw UsageError("--strategy " + name + ": " + *instead);
  throw UsageError("--strategy " + name + ": this build has one process on one device. Use --strategy single.");
}

}  // namespace levin
