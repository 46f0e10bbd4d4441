#pragma once
// Which checkpoint a run shall load, and what of it comes before the optimizers are made.

#include <levin/trainer/checkpoint.h>

#include <functional>

#include "run.h"

namespace levin {

/// "best" or "last" of the policies among these; empty when none has it.
std::filesystem::path find_checkpoint(const std::vector<CallbackPtr>& callbacks, const std::string& which);

/// A folder as given, or what "last" and "best" stand for: in this process, else as pointers of an earlier one. Throws
/// IoError where there is none.
std::filesystem::path resolve_checkpoint(const std::vector<CallbackPtr>& callbacks, const std::string& ckpt_path);

/// The same for a fit, which without a path may go on from what a policy or a SLURM job has left; empty for a new
/// start. Puts right first what a killed process left in the policies' folders.
std::filesystem::path choose_checkpoint(const Run& run, const std::string& ckpt_path);

/// What `find` gives on rank zero, on all ranks.
std::filesystem::path of_rank_zero(Run& run, const std::function<std::filesystem::path()>& find);

/// Reads it and gives the module its weights, then the hooks, the callbacks and the run's place what is theirs. Throws
/// StateError where this run cannot go on from it: weights only, another network or precision; UsageError where it
/// stands beyond max_epochs.
Checkpoint load_for_fit(Run& run, const std::filesystem::path& folder);

/// Loads the weights as module.strict_loading says; throws StateError that names the folder when they do not fit.
void load_weights(Run& run, const StateDict& weights, const std::filesystem::path& folder);

}  // namespace levin
