#pragma once
// The strategies by name.

#include <levin/trainer/strategy.h>

#include <string_view>

#include "world.h"

namespace levin {

/// What the options come to.
struct StrategyChoice {
  std::string name;             ///< never "auto"
  std::vector<Device> devices;  ///< of this machine
  const StrategyOptions* options = nullptr;

  /// Joins the processes of the run, or starts them: one a device of this machine.
  World& world() const;
  /// That of this process among them.
  Device own_device() const;
};

std::unique_ptr<Strategy> make_single(Device device);
std::unique_ptr<Strategy> make_dp(const StrategyChoice& choice);
std::unique_ptr<Strategy> make_ddp(const StrategyChoice& choice);
std::unique_ptr<Strategy> make_ddp2(const StrategyChoice& choice);
std::unique_ptr<Strategy> make_horovod(const StrategyChoice& choice);
std::unique_ptr<Strategy> make_bagua(const StrategyChoice& choice);
/// Throw UsageError for options that make no sense; `strategy` is its name, never "auto".
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

/// Null for a name that is none.
const StrategyKind* find_strategy(std::string_view name);
/// Whether ranks divide what a checkpoint holds.
bool divides_state(std::string_view name);
/// "single, ddp, ... and x": those that a user may ask for.
std::string known_strategies();

}  // namespace levin
