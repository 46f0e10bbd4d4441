#pragma once
// Batches from a dataset, in order, made by threads ahead of their use.

#include <levin/core/owned_ptr.h>
#include <levin/data/dataset.h>
#include <levin/data/iterable.h>
#include <levin/data/loader_state.h>
#include <levin/data/sampler.h>

#include <functional>
#include <iterator>
#include <optional>

namespace levin::data {

using Collate = std::function<Batch(std::span<const Sample>)>;

/// PyTorch's arguments, in its order.
struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
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
  std::optional<std::uint64_t> seed{};           ///< of shuffle and augmentations; the default generator's if absent
  /// Which share of every epoch this loader gives: every num_replicas-th index (or batch of a batch sampler, or shard
  /// of an iterable dataset), beginning with `rank`. The order, and so the seed, is that of all ranks.
  int num_replicas = 1, rank = 0;
  /// Of a share: indices come a second time where the ranks would not get as many; false for evaluation, where none may
  /// count twice.
  bool pad = true;
};

/// Which worker this is; for worker_init, datasets and collate functions.
struct WorkerInfo {
  int id = 0;
  int num_workers = 0;
};
/// Nothing outside of a DataLoader's workers.
std::optional<WorkerInfo> get_worker_info();

/// How long a walk took, and how much of that its user waited for batches.
struct LoaderTimes {
  double wait = 0;   ///< seconds
  double total = 0;  ///< seconds since the walk began, up to its end
  int64_t batches = 0;
  /// From 0 to 1; 0 before the first batch.
  double share() const { return total > 0 ? wait / total : 0; }
};

/// Walks over the batches of one epoch:
///
///     data::DataLoader loader(data::FashionMnist("train"), {.batch_size = 128, .shuffle = true});
///     for (auto& [x, y] : loader) ...
///
/// Each walk is a new epoch, with a new order if shuffled. The batches are the same for any number of workers. An
/// exception in a dataset comes out of the walk with the same type (for Levin's errors) and names worker and index;
/// other exceptions come nested in an Error. The loader stays usable. Only one walk at a time.
class DataLoader {
 public:
  /// Throws ValueError for options that make no sense and for an empty dataset.
  explicit DataLoader(DatasetPtr dataset, const DataLoaderOptions& options = {});
  template <IsDataset D>
  explicit DataLoader(D&& dataset, const DataLoaderOptions& options = {})
      : DataLoader(share(std::forward<D>(dataset)), options) {}
  /// Batches come from the shards in turn, each of samples of one shard; a shard's last batch may be smaller. Throws
  /// ValueError for options that need an order or a size (shuffle, samplers), and when ranks outnumber shards.
  explicit DataLoader(IterablePtr dataset, const DataLoaderOptions& options = {});
  template <IsIterable D>
  explicit DataLoader(D&& dataset, const DataLoaderOptions& options = {})
      : DataLoader(share(std::forward<D>(dataset)), options) {}
  DataLoader(DataLoader&&) noexcept;
  DataLoader& operator=(DataLoader&&) noexcept;
  ~DataLoader();

  class Iterator;
  /// Begins an epoch: the one set by set_epoch or load_state, else the next. Loads the first batch.
  Iterator begin();
  /// Begins at a batch. Those before it are not loaded, save by iterable datasets and combined loaders.
  Iterator begin_at(int64_t batch);
  static std::default_sentinel_t end() { return {}; }

  /// Whether an epoch's length is known beforehand; that of an iterable dataset is not.
  bool has_size() const;
  /// Batches in an epoch; throws UsageError when unknown.
  int64_t size() const;
  /// Null when the batches come from an iterable dataset or from several loaders.
  const DatasetPtr& dataset() const;
  const DataLoaderOptions& options() const;
  /// The number of the running epoch, or of the next one between two.
  int64_t epoch() const;
  /// Chooses the next epoch, from its first batch; a loaded state of that same epoch keeps its place.
  void set_epoch(int64_t epoch);
  /// The same data in the same order, for one of several ranks; it begins with this loader's epoch. The loader itself
  /// gives up nothing. Throws ValueError for a rank that does not exist.
  std::shared_ptr<DataLoader> share_of(int num_replicas, int rank, bool pad = true) const;
  LoaderState state() const;
  /// The next walk continues there. Throws StateError when the data or the batch size differ.
  void load_state(const LoaderState& state);

  /// Of the running walk, or of the last one.
  LoaderTimes times() const;
  /// One sentence that tells what to change when more than `threshold` of a walk of 10 batches or more was spent
  /// waiting; otherwise empty.
  std::string wait_advice(double threshold = 0.1) const;

 protected:
  struct Impl;
  explicit DataLoader(std::unique_ptr<Impl> impl);
  static Impl& impl_of(DataLoader& loader) { return *loader.impl_; }
  OwnedPtr<Impl> impl_;
};

/// The place in a walk. Move-only.
class DataLoader::Iterator {
 public:
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;
  Batch& operator*() { return batch_; }
  Batch* operator->() { return &batch_; }
  /// Drops the batch and loads the next one.
  Iterator& operator++();
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& i, std::default_sentinel_t) { return i.done_; }
  /// Number of the batch in its epoch.
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
