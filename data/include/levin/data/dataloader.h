#pragma once
// The DataLoader: batches of a dataset in order, loaded ahead by threads.

#include <levin/core/owned_ptr.h>
#include <levin/data/dataset.h>
#include <levin/data/iterable.h>
#include <levin/data/loader_state.h>
#include <levin/data/sampler.h>

#include <functional>
#include <iterator>
#include <optional>

namespace levin::data {

/// Makes a batch from samples; several workers call it at the same time.
using Collate = std::function<Batch(std::span<const Sample>)>;

/// Arguments of torch.utils.data.DataLoader, in its order.
struct DataLoaderOptions {
  int64_t batch_size = 1;                        ///< samples in a batch
  bool shuffle = false;                          ///< a new random order in each epoch
  std::shared_ptr<const Sampler> sampler{};      ///< instead of shuffle
  std::shared_ptr<const BatchSampler> batch_sampler{};  ///< instead of batch_size, shuffle, sampler and drop_last
  int num_workers = 0;                           ///< threads that load ahead; 0 loads in the caller
  Collate collate{};                             ///< makes a batch from samples; Dataset::get_batch if empty
  bool pin_memory = false;                       ///< page-locked batches, for CUDA; without a device it does nothing
  bool drop_last = false;                        ///< leave out a last batch that is not full
  double timeout = 0;                            ///< seconds to wait for a worker's batch; 0 waits for ever
  std::function<void(int worker)> worker_init{};  ///< called first in each worker's thread
  int prefetch_factor = 2;                       ///< batches that each worker may be ahead
  bool persistent_workers = true;                ///< keep the threads between epochs
  /// Of shuffle and augmentations. If absent, shuffle draws it from the default generator at the first use (see
  /// OrderSeed), and without shuffle it is that generator's seed.
  std::optional<std::uint64_t> seed{};
  /// The share of every epoch that this loader returns: every num_replicas-th index (or batch of a batch sampler, or
  /// shard of an iterable dataset), beginning with `rank`. The order and the seed are the same on all ranks.
  int num_replicas = 1, rank = 0;
  /// Repeats indices so that all ranks get equally many; use false for evaluation, where no sample may count twice.
  bool pad = true;
};

/// The worker that runs the calling code; for worker_init, datasets and collate functions.
struct WorkerInfo {
  int id = 0;           ///< index of the worker, from 0
  int num_workers = 0;  ///< workers of its loader
};
/// Returns the worker that runs the calling code, and nothing outside of a DataLoader's workers.
std::optional<WorkerInfo> get_worker_info();

/// The time of one pass over a loader, and how much of it was spent waiting for batches.
struct LoaderTimes {
  double wait = 0;      ///< seconds
  double total = 0;     ///< seconds from the beginning of the pass to its end, or to now
  int64_t batches = 0;  ///< batches returned
  /// Share of the time spent waiting, from 0 to 1; 0 before the first batch.
  double share() const { return total > 0 ? wait / total : 0; }
};

/// Iterates over the batches of one epoch:
///
///     data::DataLoader loader(data::FashionMnist("train"), {.batch_size = 128, .shuffle = true});
///     for (auto& [x, y] : loader) ...
///
/// Each iteration over it is a new epoch, with a new order if shuffled. The batches are the same for any number of
/// workers. An exception in a dataset leaves the loop with the same type (for Levin's errors) and names worker and
/// index; other exceptions are nested in an Error. The loader stays usable. Only one iteration may run at a time.
class DataLoader {
 public:
  /// Throws ValueError for options that make no sense and for an empty dataset.
  explicit DataLoader(DatasetPtr dataset, const DataLoaderOptions& options = {});
  template <IsDataset D>
  explicit DataLoader(D&& dataset, const DataLoaderOptions& options = {})
      : DataLoader(share(std::forward<D>(dataset)), options) {}
  /// Takes batches from the shards in turn. A batch holds samples of one shard; a shard's last batch may be smaller.
  /// Throws ValueError for options that need an order or a size (shuffle, samplers), and if ranks outnumber shards.
  explicit DataLoader(IterablePtr dataset, const DataLoaderOptions& options = {});
  template <IsIterable D>
  explicit DataLoader(D&& dataset, const DataLoaderOptions& options = {})
      : DataLoader(share(std::forward<D>(dataset)), options) {}
  DataLoader(DataLoader&&) noexcept;
  DataLoader& operator=(DataLoader&&) noexcept;
  ~DataLoader();

  class Iterator;
  /// Begins an epoch, the one set by set_epoch or load_state, else the next, and loads its first batch.
  Iterator begin();
  /// Begins an epoch at a batch. The batches before it are not loaded, except by iterable datasets and combined
  /// loaders. Throws IndexError for a batch that the epoch does not have.
  Iterator begin_at(int64_t batch);
  /// The end of every epoch.
  static std::default_sentinel_t end() { return {}; }

  /// True if the length of an epoch is known in advance; that of an iterable dataset is not.
  bool has_size() const;
  /// Number of batches in an epoch; throws UsageError if it is unknown.
  int64_t size() const;
  /// Returns the dataset; null when the batches come from an iterable dataset or from several loaders.
  const DatasetPtr& dataset() const;
  /// Returns the options, of which those that do nothing on this machine (pin_memory) are off.
  const DataLoaderOptions& options() const;
  /// Number of the running epoch; between two epochs, of the next.
  int64_t epoch() const;
  /// Sets the next epoch, which begins with its first batch; a loaded state of the same epoch keeps its place. Throws
  /// ValueError for a negative epoch.
  void set_epoch(int64_t epoch);
  /// Returns a loader of one rank's share of the same data in the same order; it begins with this loader's epoch. This
  /// loader does not change. Throws ValueError for a rank that does not exist.
  std::shared_ptr<DataLoader> share_of(int num_replicas, int rank, bool pad = true) const;
  /// The position; draws the seeds that were not given, unless they are known.
  LoaderState state() const;
  /// The next iteration continues at `state`. Throws StateError if the data or the batch size differ.
  void load_state(const LoaderState& state);
  /// Takes over the seeds of another rank's loader of the same data, but not its position; call it between epochs. The
  /// seed of a sampler that was given one stays.
  void take_seeds(const LoaderState& state);

  /// Times of the running epoch, or of the last one.
  LoaderTimes times() const;
  /// Returns one sentence with a remedy if more than `threshold` of an epoch of 10 batches or more was spent waiting;
  /// otherwise an empty text.
  std::string wait_advice(double threshold = 0.1) const;

 protected:
  struct Impl;
  /// For loaders that are made of others.
  explicit DataLoader(std::unique_ptr<Impl> impl);
  /// Returns the implementation of another loader.
  static Impl& impl_of(DataLoader& loader) { return *loader.impl_; }
  OwnedPtr<Impl> impl_;
};

/// The position in an epoch, an input iterator; move-only. Throws Error if it goes on after another iteration over the
/// loader has begun.
class DataLoader::Iterator {
 public:
  /// For std::input_iterator.
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;
  /// The batch belongs to the iterator and may be changed or moved from.
  Batch& operator*() { return batch_; }
  Batch* operator->() { return &batch_; }
  /// Releases the batch and loads the next.
  Iterator& operator++();
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& i, std::default_sentinel_t) { return i.done_; }
  /// Index of the batch in its epoch.
  int64_t index() const { return index_; }

 private:
  friend class DataLoader;
  Iterator(Impl* impl, std::uint64_t walk, int64_t first) : impl_(impl), walk_(walk), index_(first - 1) { ++*this; }
  Impl* impl_;
  std::uint64_t walk_;
  int64_t index_;
  Batch batch_;
  bool done_ = false;
};

}  // namespace levin::data
