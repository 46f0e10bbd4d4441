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
  std::optional<distributed::HeldPort> port;        ///< of the store, unless one was given
  std::unique_ptr<distributed::LocalRanks> others;  ///< started by this process, which waits for them at the end
  std::shared_ptr<distributed::Store> store;
  std::shared_ptr<distributed::ProcessGroup> group;  ///< destroyed first
};

/// Determines this process's rank from its environment, or else starts the other processes of this machine, one per
/// device (ddp2: one per machine); waits until all have joined. The first call decides; the world lasts until the
/// process ends. Throws UsageError if a different world is requested, RendezvousError, StoreError.
World& join_world(std::span<const Device> devices, const StrategyOptions& options);

/// Returns the device of a rank, by its local rank, also if a launcher started more ranks than "auto" selects.
Device device_of(const distributed::RankInfo& rank, std::span<const Device> devices);

}  // namespace levin
