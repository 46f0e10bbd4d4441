// A pair of groups of the same ranks, one for each type of device.

#include <fmt/format.h>

#include "src/groups/backends.h"

namespace levin::distributed {

namespace {

class DeviceGroups final : public ProcessGroup {
 public:
  DeviceGroups(std::shared_ptr<ProcessGroup> cpu, std::shared_ptr<ProcessGroup> cuda)
      : ProcessGroup(cuda->rank(), cuda->ranks(), cuda->timeout()), cpu_(std::move(cpu)), cuda_(std::move(cuda)) {}
  std::string name() const override { return "cpu:gloo,cuda:nccl"; }

  std::shared_ptr<ProcessGroup> new_group(const std::vector<int>& members) override {
    hand_down_timeout();
    auto cpu = cpu_->new_group(members);
    auto cuda = cuda_->new_group(members);
    return cuda ? as_part(make_device_groups(std::move(cpu), std::move(cuda))) : nullptr;
  }

  Tensor shared_empty(const Shape& sizes, const TensorOptions& options) override {
    hand_down_timeout();
    return cpu_->shared_empty(sizes, options);
  }

  void abort(const std::string& reason) override {
    cpu_->abort(reason);
    cuda_->abort(reason);
  }

 protected:
  Work begin(Collective c) override {
    hand_down_timeout();
    const Tensor& first = c.output.defined() ? c.output : c.input;
    const Device device = first.defined() ? first.device() : kCpu;
    for (const Tensor* t : {&c.output, &c.input}) {
      if (!t->defined() || t->device() == device) continue;
      throw DeviceError(fmt::format("[{}] the output is on {}, the input on {}; move one of them.", to_string(c.kind),
                                    to_string(device), to_string(t->device())));
    }
    return begin_on(device.type == DeviceType::cuda ? *cuda_ : *cpu_, std::move(c));
  }

 private:
  void hand_down_timeout() {
    cpu_->set_timeout(timeout());
    cuda_->set_timeout(timeout());
  }

  std::shared_ptr<ProcessGroup> cpu_, cuda_;
};

}  // namespace

std::shared_ptr<ProcessGroup> make_device_groups(std::shared_ptr<ProcessGroup> cpu,
                                                 std::shared_ptr<ProcessGroup> cuda) {
  return std::make_shared<DeviceGroups>(std::move(cpu), std::move(cuda));
}

}  // namespace levin::distributed
