#include <levin/core/config.h>
#include <levin/kernels/cuda.h>
#include <levin/trainer/strategy.h>

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "ddp_strategy.h"
#include "legacy_options.h"
#include "spawn.h"

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
  std::vector<std::uint8_t> any(const std::vector<std::uint8_t>& flags) override { return flags; }
  void abort(const std::string&) override {}

 private:
  Device device_;
};

/// Whether "auto" means a GPU: not in the emulator, where it would be the slowest choice.
bool prefers_cuda() { return std::string_view(LEVIN_CUDA_FLAVOUR) == "ON" && cuda::is_available(); }

}  // namespace

std::vector<Device> choose_devices(const std::string& accelerator, const DeviceList& devices) {
  std::vector<Device> out;
  if (accelerator == "cuda" || accelerator == "gpu" || (accelerator == "auto" && prefers_cuda())) {
    if (!cuda::is_available())
      throw UsageError(fmt::format("--accelerator {}: {}", accelerator, cuda::why_unavailable()));
    for (const int i : devices.indices(cuda::device_count(), "cuda")) out.push_back(cuda(i));
    return out;
  }
  if (const auto instead = legacy_accelerator(accelerator))
    throw UsageError(fmt::format("--accelerator {}: {}", accelerator, *instead));
  if (accelerator != "auto" && accelerator != "cpu")
    throw UsageError(fmt::format("--accelerator {}: there are cpu and cuda. Use one of them, or auto.", accelerator));
  DeviceList::parse(devices.text());
  int processes = 1;
  const std::string& text = devices.text();
  if (!devices.is_auto() && text != "-1") {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), processes);
    if (error != std::errc() || end != text.data() + text.size())
      throw UsageError(fmt::format("--devices {}: the CPU is one device, which has no index. Give a number of "
                                   "processes, such as 2.",
                                   text));
  }
  out.assign(static_cast<std::size_t>(processes), kCpu);
  return out;
}

namespace {

/// What the options come to.
struct Choice {
  std::vector<Device> devices;
  std::string name;
};

Choice choose(const StrategyOptions& o) {
  Choice c{choose_devices(o.accelerator, o.devices), o.strategy};
  const bool several = c.devices.size() > 1 || o.num_nodes > 1;
  if (c.name == "auto") c.name = several ? "ddp" : "single";
  if (const auto instead = legacy_strategy(c.name)) throw UsageError("--strategy " + c.name + ": " + *instead);
  if (c.name != "single" && !is_ddp(c.name))
    throw UsageError(
        fmt::format("--strategy {}: there are single, ddp and ddp_spawn. Use one of them, or auto.", o.strategy));
  if (c.name == "single" && several)
    throw UsageError(fmt::format("--strategy single: --devices {} and --num-nodes {} are more than one device. Use "
                                 "--strategy ddp.",
                                 o.devices.text(), o.num_nodes));
  if (c.name == "ddp_spawn" && o.num_nodes > 1)
    throw UsageError(fmt::format("--strategy ddp_spawn: its ranks are processes of one machine, and --num-nodes is {}. "
                                 "Use --strategy ddp.",
                                 o.num_nodes));
  if (o.node_rank >= o.num_nodes)
    throw UsageError(fmt::format("--node-rank {}: there are {} machines, counted from 0. Give less, or raise "
                                 "--num-nodes.",
                                 o.node_rank, o.num_nodes));
  return c;
}

}  // namespace

void check_strategy(const StrategyOptions& options) { choose(options); }

std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options) {
  const Choice c = choose(options);
  if (c.name == "single" || is_spawning_parent(c.name, c.devices.size())) return make_strategy("single", c.devices[0]);
  return make_ddp(c.name, c.devices, options);
}

std::unique_ptr<Strategy> make_strategy(const std::string& name, Device device) {
  if (name == "auto" || name == "single") return std::make_unique<SingleDevice>(device);
  throw UsageError("--strategy " + name + ": one process on one device is the strategy single.");
}

}  // namespace levin
