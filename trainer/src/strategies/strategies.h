#pragma once
// Table of the strategies by name.

#include <levin/trainer/strategy.h>

#include <string_view>

#include "src/strategies/world.h"

namespace levin {

/// Resolved options of a strategy.
struct StrategyChoice {
  std::string name;             ///< never "auto"
  std::vector<Device> devices;  ///< of this machine
  const StrategyOptions* options = nullptr;

  /// Joins the processes of the run, or starts them: one per device of this machine.
  World& world() const;
  /// Device of this process.
  Device own_device() const;
};

std::unique_ptr<Strategy> make_single(Device device);
std::unique_ptr<Strategy> make_dp(const StrategyChoice& choice);
std::unique_ptr<Strategy> make_ddp(const StrategyChoice& choice);
std::unique_ptr<Strategy> make_ddp2(const StrategyChoice& choice);
std::unique_ptr<Strategy> make_horovod(const StrategyChoice& choice);
std::unique_ptr<Strategy> make_bagua(const StrategyChoice& choice);
/// Throw UsageError for invalid options; `strategy` is the resolved name, never "auto".
void check_ddp(const StrategyOptions& options, const std::string& strategy);
void check_horovod(const StrategyOptions& options);
void check_bagua(const StrategyOptions& options);
void check_fsdp(const StrategyOptions& options, const std::string& strategy);
void check_pipeline(const StrategyOptions& options);
std::unique_ptr<Strategy> make_zero(const StrategyChoice& choice);
std::unique_ptr<Strategy> make_fsdp(const StrategyChoice& choice);
std::unique_ptr<Strategy> make_pipeline(const StrategyChoice& choice);

struct StrategyKind {
  std::string_view name;
  std::unique_ptr<Strategy> (*make)(const StrategyChoice& choice);
};

/// Returns null for an unknown name.
const StrategyKind* find_strategy(std::string_view name);
/// True if ranks shard state that checkpoints hold.
bool shards_state(std::string_view name);
/// Returns "single, ddp, ... and x": the names that a user may give.
std::string known_strategies();

}  // namespace levin
