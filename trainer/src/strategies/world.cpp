#include "src/strategies/world.h"

#include <fmt/format.h>

#include "src/logging.h"

namespace levin {
namespace {

using namespace distributed;

constexpr std::chrono::seconds kGrace(30);  // for other ranks to exit after this one

/// This process is the first on its machine and starts the others.
void start_others(World& world, int processes, const StrategyOptions& o, const Environment& env) {
  const RankOptions place{
      .num_nodes = static_cast<int>(o.num_nodes), .devices = processes, .node_rank = static_cast<int>(o.node_rank)};
  Environment first = env;
  first["LOCAL_RANK"] = "0";
  world.info = rank_info(first, place);
  if (world.info.world_size == 1) return;
  if (o.num_nodes == 1 && !env.contains("MASTER_PORT"))
    world.info.store_port = world.info.master_port = world.port.emplace().number();
  if (processes == 1) return;
  world.others = std::make_unique<LocalRanks>(LaunchOptions{.processes = processes,
                                                            .num_nodes = static_cast<int>(o.num_nodes),
                                                            .node_rank = world.info.node_rank,
                                                            .master_addr = world.info.master_addr,
                                                            .master_port = world.info.master_port,
                                                            .grace = kGrace});
}

void check_size(const RankInfo& info, int processes, const StrategyOptions& o) {
  if (o.strategy == "ddp2" && info.local_world_size > 1)
    throw UsageError(fmt::format("--strategy ddp2: it uses one process per machine, but {} specify {} on this one.",
                                 info.source, info.local_world_size));
  if (o.devices.is_auto() || info.local_world_size == processes || o.strategy == "ddp2") return;
  throw UsageError(
      fmt::format("--devices {}: {} has started {} processes on this machine. Use --devices {}, or leave it out.",
                  o.devices.text(), info.source, info.local_world_size, info.local_world_size));
}

/// Gradients are transferred between devices, control messages through the host.
std::shared_ptr<ProcessGroup> make_group(const World& world, Device device, const StrategyOptions& o) {
  GroupOptions options{.store = world.store,
                       .rank = world.info.rank,
                       .world_size = world.info.world_size,
                       .timeout = std::chrono::seconds(o.timeout),
                       .nccl_algo = o.nccl_algo};
  if (device.type != DeviceType::cuda) return make_process_group("gloo", options);
  options.device = device.index;
  return make_process_group("cpu:gloo,cuda:nccl", options);
}

std::unique_ptr<World> make_world(std::span<const Device> devices, const StrategyOptions& o) {
  const int processes = o.strategy == "ddp2" ? 1 : static_cast<int>(devices.size());
  auto world = std::make_unique<World>();
  const Environment env = environment();
  if (has_launcher(env)) {
    world->info = rank_info(
        env,
        {.num_nodes = static_cast<int>(o.num_nodes), .devices = processes, .node_rank = static_cast<int>(o.node_rank)});
    check_size(world->info, processes, o);
  } else {
    start_others(*world, processes, o, env);
  }
  const RankInfo& me = world->info;
  const std::chrono::seconds timeout(o.timeout);
  if (me.rank != 0) logging::only_errors();  // only rank zero reports what all ranks would say
  if (me.world_size == 1) {
    world->group = make_process_group("single");
    return world;
  }
  world->store = open_store(me, "env://", timeout);
  join(*world->store, me, timeout);
  world->group = make_group(*world, device_of(me, devices), o);
  return world;
}

}  // namespace

World& join_world(std::span<const Device> devices, const StrategyOptions& options) {
  static std::unique_ptr<World> world;
  if (!world) world = make_world(devices, options);
  check_size(world->info, static_cast<int>(devices.size()), options);
  return *world;
}

Device device_of(const RankInfo& rank, std::span<const Device> devices) {
  const auto local = static_cast<std::size_t>(rank.local_rank);
  if (local < devices.size()) return devices[local];
  return devices[0] == kCpu ? kCpu : cuda(static_cast<int>(local));
}

}  // namespace levin
