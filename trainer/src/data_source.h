#pragma once
// Where the loaders of a run come from, and how much of each is walked.

#include <levin/trainer/module.h>
#include <levin/trainer/strategy.h>

namespace levin {

/// Loaders that were given to the run, or a data module that makes them, else the module itself.
struct DataSource {
  DataModule given{};
  LevinDataModule* datamodule = nullptr;

  LoaderPtr train(LevinModule& module) const;
  /// Those of a validation for Stage::fit.
  Loaders eval(Stage stage, LevinModule& module) const;
};

/// Loaders of an evaluation, with the number of batches of each.
struct EvalPlan {
  Loaders loaders{};
  /// Of the rank that has most; -1: all of a loader that does not know its size.
  std::vector<std::int64_t> batches{};

  /// All batches; -1 where nobody knows.
  std::int64_t total() const;
  /// The same with at most `most` batches of each loader; all where it is negative.
  EvalPlan at_most(std::int64_t most) const;
};

/// How many of a loader's batches take part, -1 for all of those that do not know their size. Throws UsageError for a
/// part of an unknown size.
std::int64_t batches_of(const BatchLimit& limit, const data::DataLoader& loader, const char* option);

/// This rank's share of the data: the loader itself where there is one rank, or where the program has made a share.
/// With `pad` all ranks get as many batches; without, no sample counts twice, and a rank may get none.
LoaderPtr shared_out(const LoaderPtr& loader, const Strategy& strategy, bool pad);

/// The same data without shuffling: what --overfit-batches repeats.
LoaderPtr in_order(const LoaderPtr& loader);

}  // namespace levin
