#pragma once
// Selects the loaders of a run and how many of their batches are used.

#include <levin/trainer/module.h>
#include <levin/trainer/strategy.h>

namespace levin {

/// Loaders given to the run, or a data module that creates them, else the module itself.
struct DataSource {
  DataModule given{};
  LevinDataModule* datamodule = nullptr;

  LoaderPtr train(LevinModule& module) const;
  /// Returns the loaders of an evaluation; those of the validation for Stage::fit.
  Loaders eval(Stage stage, LevinModule& module) const;
};

/// Loaders of an evaluation, with the number of batches of each.
struct EvalPlan {
  Loaders loaders{};
  /// The maximum over the ranks; -1: all batches of a loader of unknown size.
  std::vector<std::int64_t> batches{};

  /// Returns the sum of all batches; -1 if unknown.
  std::int64_t total() const;
  /// Returns the same plan with at most `most` batches of each loader; no limit if negative.
  EvalPlan at_most(std::int64_t most) const;
};

/// Returns how many of a loader's batches are used, -1 for all of a loader of unknown size. Throws UsageError for a
/// fraction of an unknown size.
std::int64_t batches_of(const BatchLimit& limit, const data::DataLoader& loader, const char* option);

/// Returns this rank's share of the data: the loader itself with one rank, or if the program has already distributed
/// it. With `pad` all ranks get the same number of batches; without it no sample is duplicated, and a rank may get
/// none. All ranks take over the seeds of rank zero, so that they divide one order. Collective.
LoaderPtr shared_out(const LoaderPtr& loader, const Strategy& strategy, bool pad);

/// Returns a loader of the same data without shuffling, for --overfit-batches.
LoaderPtr in_order(const LoaderPtr& loader);

}  // namespace levin
