#pragma once
// Where a loader's batches come from: a dataset, an iterable dataset, or other loaders.

#include "worker_pool.h"

namespace levin::data::detail {

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Batches in an epoch, if that is known.
  virtual std::optional<int64_t> size() const = 0;
  /// The beginning of an epoch.
  virtual LoaderState fresh(int64_t epoch) const = 0;
  /// Throws StateError unless the place is one in this data; takes over its seed.
  virtual void adopt(const LoaderState& place) = 0;
  /// Begins a walk; drops what is left of another one.
  virtual void start(const LoaderState& place) = 0;
  /// The next batch, or nothing at the end. Moves place().
  virtual std::optional<Batch> next() = 0;
  /// After the last batch that next() gave.
  virtual LoaderState place() const = 0;
  /// The walk is over.
  virtual void stop() = 0;
  /// The same data and seed for the rank that the options name. The options live as long as the source.
  virtual std::unique_ptr<BatchSource> share(const DataLoaderOptions& options) const = 0;
  /// Whether start() may begin at any batch without loading those before.
  virtual bool can_jump() const { return false; }
  virtual const DatasetPtr& dataset() const {
    static const DatasetPtr none;
    return none;
  }
};

/// Runs a job's turns in order, in the caller or in workers.
class JobRunner {
 public:
  explicit JobRunner(const DataLoaderOptions& options) : options_(options) {}
  void start(std::shared_ptr<const LoadJob> job, int64_t first);
  std::optional<Batch> next();
  void stop();

 private:
  std::optional<Batch> run_here(int64_t turn) const;
  const DataLoaderOptions& options_;
  std::shared_ptr<const LoadJob> job_;
  int64_t turn_ = 0;
  bool failed_ = false;  // in this walk
  std::unique_ptr<WorkerPool> pool_;
};

std::unique_ptr<BatchSource> make_map_source(DatasetPtr dataset, const DataLoaderOptions& options, std::uint64_t seed);
std::unique_ptr<BatchSource> make_stream_source(IterablePtr dataset, const DataLoaderOptions& options,
                                                std::uint64_t seed);

/// Augmentations get another stream of random numbers than the shuffle.
inline constexpr std::uint64_t kAugmentStream = 0x617567;

/// For a place that does not fit: "[dataloader] ...".
[[noreturn]] void refuse_damaged_place(const LoaderState& place, int64_t batches);

}  // namespace levin::data::detail
