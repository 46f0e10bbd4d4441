#pragma once
// Sources of a loader's batches: a dataset, an iterable dataset, or other loaders.

#include "worker_pool.h"

namespace levin::data::detail {

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Number of batches in an epoch, if it is known.
  virtual std::optional<int64_t> size() const = 0;
  /// Returns the state at the beginning of an epoch, without seeds.
  virtual LoaderState fresh(int64_t epoch) const = 0;
  /// Throws StateError unless `place` is a position in this data.
  virtual void check(const LoaderState& place) const = 0;
  /// Enters the seeds, which are drawn now unless they are known.
  virtual void put_seeds(LoaderState& place) const = 0;
  /// Takes over the seeds of a place.
  virtual void take_seeds(const LoaderState& place) = 0;
  /// Begins an iteration at `place`; drops the rest of the previous one.
  virtual void start(const LoaderState& place) = 0;
  /// Returns the next batch, or nothing at the end, and advances place().
  virtual std::optional<Batch> next() = 0;
  /// Position after the last batch that next() returned.
  virtual LoaderState place() const = 0;
  /// Ends the iteration.
  virtual void stop() = 0;
  /// Returns a source of the same data and seed for the rank in `options`, which must outlive it.
  virtual std::unique_ptr<BatchSource> share(const DataLoaderOptions& options) const = 0;
  /// True if start() can begin at any batch without loading those before.
  virtual bool can_jump() const { return false; }
  virtual const DatasetPtr& dataset() const {
    static const DatasetPtr none;
    return none;
  }
};

/// Runs the turns of a job in order, in the caller or in workers.
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
  bool failed_ = false;  // in this iteration
  std::unique_ptr<WorkerPool> pool_;
};

std::unique_ptr<BatchSource> make_map_source(DatasetPtr dataset, const DataLoaderOptions& options, OrderSeed seed);
std::unique_ptr<BatchSource> make_stream_source(IterablePtr dataset, const DataLoaderOptions& options, OrderSeed seed);

/// Separates the random numbers of augmentations from those of the shuffle.
inline constexpr std::uint64_t kAugmentStream = 0x617567;

/// Throws StateError for a position that does not fit the data.
[[noreturn]] void refuse_damaged_place(const LoaderState& place, int64_t batches);

}  // namespace levin::data::detail
