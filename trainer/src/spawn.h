#pragma once
// ddp_spawn: ranks live for one call of the Trainer, and the process that called gets what they have made. A rank is
// this program executed again: the calls before that one are not run there, but give what they have left.

#include <levin/trainer/config.h>

#include <levin/core/error.h>

namespace levin {

/// Ends a rank whose part is done; run_main makes status 0 of it.
class SpawnDone : public Error {
 public:
  SpawnDone() : Error("[ddp_spawn] the part of this rank is done, and its process ends here.") {}
};

/// One fit, validate or test.
struct SpawnCall {
  enum class Part {
    here,    ///< no spawning: it runs in this process
    parent,  ///< it runs in ranks that this process starts
    rank,    ///< this process is one of these
    past,    ///< this process is a rank of a later call
  };
  Part part = Part::here;
  int number = 0;
  std::filesystem::path result{};  ///< the folder of what it leaves, as a checkpoint
};

/// The call that begins now; counts the calls of this process.
SpawnCall next_spawn_call(const TrainerConfig& config);

/// Whether this process starts ranks for its calls, but is none itself.
bool is_spawning_parent(const std::string& strategy, std::size_t processes);

/// Runs the ranks of a call to their end. Throws Interrupted where a signal ended them, DistributedError where they
/// failed.
void run_ranks(const SpawnCall& call, const TrainerConfig& config);

}  // namespace levin
