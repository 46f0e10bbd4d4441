#pragma once
// Selects the checkpoint that a run loads, and restores what is needed before the optimizers are created.

#include <levin/trainer/checkpoint/checkpoint.h>

#include <filesystem>
#include <functional>

#include "src/loops/run.h"

namespace levin {

/// Returns the folder of "best" or "last" according to the policies among `callbacks`; empty if none has it.
std::filesystem::path find_checkpoint(const std::vector<CallbackPtr>& callbacks, const std::string& which);

/// Resolves "last" and "best", first from this process's policies, then from pointers of earlier ones; returns other
/// paths unchanged. Throws IoError if there is no such checkpoint.
std::filesystem::path resolve_checkpoint(const std::vector<CallbackPtr>& callbacks, const std::string& ckpt_path);

/// The same for a fit, which without a path may resume from a checkpoint that a policy or a SLURM job left; empty to
/// start from scratch. First cleans up the policies' folders after a killed process.
std::filesystem::path choose_checkpoint(const Run& run, const std::string& ckpt_path);

/// Returns rank zero's result of `find` on all ranks.
std::filesystem::path of_rank_zero(Run& run, const std::function<std::filesystem::path()>& find);

/// Reads the checkpoint, loads the module's weights, then passes their state to the hooks, the callbacks and the run's
/// position. Throws StateError if this run cannot resume from it (weights only, another network or precision), and
/// UsageError if it lies beyond max_epochs.
Checkpoint load_for_fit(Run& run, const std::filesystem::path& folder);

/// Loads the weights according to module.strict_loading; throws StateError with the folder if they do not fit.
void load_weights(Run& run, const StateDict& weights, const std::filesystem::path& folder);

}  // namespace levin
