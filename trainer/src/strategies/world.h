#pragma once
// The processes of this run, as one group.

#include <levin/distributed/launcher.h>
#include <levin/distributed/process_group.h>
#include <levin/trainer/strategy.h>

#include <optional>
#include <span>

namespace levin {

struct World {
  distributed::RankInfo info;
  std::optional<distributed::HeldPort> port;  ///< of the store, where nobody has named one
  std::unique_ptr<distributed::LocalRanks> others;  ///< that this process has started, and waits for in the end
  std::shared_ptr<distributed::Store> store;
  std::shared_ptr<distributed::ProcessGroup> group;  ///< it ends first
};

/// Finds this process's place by its environment, or else starts the other processes of this machine, one a device
/// (ddp2: one in all); waits until all are there. The first call decides; the world lasts to the end of the process.
/// Throws UsageError where another world is asked for, RendezvousError, StoreError.
World& join_world(std::span<const Device> devices, const StrategyOptions& options);

/// The device of a rank: that of its number on its machine, also where a launcher has started more ranks than "auto"
/// knows of.
Device device_of(const distributed::RankInfo& rank, std::span<const Device> devices);

}  // namespace levin
