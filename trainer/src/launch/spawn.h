#pragma once
// ddp_spawn: ranks live for one call of the Trainer, and the calling process receives their results. A rank re-executes
// this program: it skips the earlier calls and loads their results instead.

#include <levin/trainer/config/config.h>

#include <levin/core/error.h>

namespace levin {

/// Thrown to end a rank that has finished its call; run_main returns 0 for it.
class SpawnDone : public Error {
 public:
  SpawnDone() : Error("[ddp_spawn] this rank has finished its call, and its process ends.") {}
};

/// One call of fit, validate or test.
struct SpawnCall {
  enum class Part {
    here,    ///< runs in this process without spawning
    parent,  ///< runs in ranks that this process starts
    rank,    ///< this process is one of those ranks
    past,    ///< this process is a rank of a later call
  };
  Part part = Part::here;
  int number = 0;
  std::string result{};  ///< folder of the results, a checkpoint
};

/// Returns the call that begins now and counts the calls of this process.
SpawnCall next_spawn_call(const TrainerConfig& config);

/// True if this process starts ranks for its calls and is not a rank itself.
bool is_spawning_parent(const std::string& strategy, std::size_t processes);

/// Starts the ranks of a call and waits for them. Throws Interrupted if a signal ended them, and DistributedError if
/// they failed.
void run_ranks(const SpawnCall& call, const TrainerConfig& config);

}  // namespace levin
