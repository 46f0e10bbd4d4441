#include <levin/distributed/ddp.h>
#include <levin/distributed/rendezvous.h>
#include <levin/distributed/sync_batch_norm.h>
#include <levin/kernels/cuda.h>
#include <levin/optim/clip.h>
#include <levin/trainer/strategy.h>

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "src/config/legacy_options.h"
#include "src/launch/spawn.h"
#include "src/strategies/strategies.h"

namespace levin {
namespace {

/// True if "auto" selects a GPU: not in the emulator, where it would be the slowest choice.
bool prefers_cuda() { return std::string_view(cuda::flavour()) == "ON" && cuda::is_available(); }

}  // namespace

Strategy::Strategy(Device device, const distributed::RankInfo& info, std::shared_ptr<distributed::ProcessGroup> group)
    : device_(device),
      group_(std::move(group)),
      rank_(info.rank),
      world_size_(info.world_size),
      local_rank_(info.local_rank),
      node_rank_(info.node_rank) {}

Batch Strategy::to_device(Batch batch) const {
  for (Tensor& t : batch.tensors) t = t.to(device_);
  return batch;
}

void Strategy::sync_batchnorm(nn::Module& module) const {
  if (group_) distributed::convert_sync_batchnorm(module, group_);
}

void Strategy::broadcast_buffers(nn::Module& module) {
  if (!group_) return;
  std::vector<Tensor> buffers;
  for (const auto& [name, b] : module.named_buffers()) buffers.push_back(b);
  distributed::broadcast_all(*group_, buffers);
}

void Strategy::clip_grad_norm(const std::vector<Parameter>& parameters, double max_norm) {
  optim::clip_grad_norm_(parameters, max_norm);
}

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

StrategyChoice choose(const StrategyOptions& o) {
  StrategyChoice c{.name = o.strategy, .devices = choose_devices(o.accelerator, o.devices), .options = &o};
  const bool several = c.devices.size() > 1 || o.num_nodes > 1;
  if (c.name == "auto") c.name = several ? "ddp" : "single";
  if (const auto instead = legacy_strategy(c.name)) throw UsageError("--strategy " + c.name + ": " + *instead);
  if (find_strategy(c.name) == nullptr)
    throw UsageError(
        fmt::format("--strategy {}: there are {}. Use one of them, or auto.", o.strategy, known_strategies()));
  if (c.name == "single" && several)
    throw UsageError(fmt::format("--strategy single: --devices {} and --num-nodes {} are more than one device. Use "
                                 "--strategy ddp.",
                                 o.devices.text(), o.num_nodes));
  if (c.name == "dp" && o.num_nodes > 1)
    throw UsageError(fmt::format("--strategy dp: it is one process, and --num-nodes is {}. Use --strategy ddp.",
                                 o.num_nodes));
  if (c.name == "ddp_spawn" && o.num_nodes > 1)
    throw UsageError(fmt::format("--strategy ddp_spawn: its ranks are processes of one machine, and --num-nodes is {}. "
                                 "Use --strategy ddp.",
                                 o.num_nodes));
  if (o.node_rank >= o.num_nodes)
    throw UsageError(fmt::format("--node-rank {}: there are {} machines, counted from 0. Give less, or raise "
                                 "--num-nodes.",
                                 o.node_rank, o.num_nodes));
  check_ddp(o, c.name);
  check_horovod(o);
  check_bagua(o);
  check_fsdp(o, c.name);
  check_pipeline(o);
  return c;
}

}  // namespace

void check_strategy(const StrategyOptions& options) { choose(options); }

std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options) {
  const StrategyChoice c = choose(options);
  return is_spawning_parent(c.name, c.devices.size()) ? make_single(c.devices[0]) : find_strategy(c.name)->make(c);
}

std::unique_ptr<Strategy> make_strategy(const std::string& name, Device device) {
  if (name == "auto" || name == "single") return make_single(device);
  throw UsageError("--strategy " + name + ": one process on one device is the strategy single.");
}

}  // namespace levin
