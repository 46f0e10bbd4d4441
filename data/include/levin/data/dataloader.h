#pragma once
// Batches from a dataset, in order, made by threads ahead of their use.

#include <levin/data/dataset.h>
#include <levin/data/sampler.h>

#include <functional>
#include <iterator>
#include <optional>

namespace levin::data {

/// PyTorch's arguments, in its order.
struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  std::shared_ptr<const Sampler> sampler{};      ///< instead of shuffle
  int num_workers = 0;                           ///< threads that load ahead; 0 loads in the caller
  std::function<Batch(std::span<const Sample>)> collate{};  ///< makes a batch from samples; Dataset::get_batch if empty
  bool pin_memory = false;                       ///< page-locked batches for a device; without effect on the CPU
  bool drop_last = false;                        ///< leave out a last batch that is not full
  double timeout = 0;                            ///< seconds to wait for a worker's batch; 0 waits for ever
  int prefetch_factor = 2;                       ///< batches that each worker may be ahead
  bool persistent_workers = true;                ///< keep the threads between epochs
  std::optional<std::uint64_t> seed{};           ///< of shuffle and augmentations; the default generator's if absent
};

/// A place in the data: `batches` counts those handed out, not those prefetched. A loader of the same dataset, batch
/// size and sampler that loads it continues with the next batch, bit by bit the same.
struct LoaderState {
  int64_t epoch = 0;
  int64_t batches = 0;
  std::uint64_t seed = 0;
  int64_t samples = 0;     ///< in an epoch, for the check that both loaders agree
  int64_t batch_size = 0;
  friend bool operator==(const LoaderState&, const LoaderState&) = default;
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
  DataLoader(DataLoader&&) noexcept;
  DataLoader& operator=(DataLoader&&) noexcept;
  ~DataLoader();

  class Iterator;
  /// Begins an epoch: the one set by set_epoch or load_state, else the next. Loads the first batch.
  Iterator begin();
  /// Begins at a batch without loading those before it.
  Iterator begin_at(int64_t batch);
  static std::default_sentinel_t end() { return {}; }

  /// Batches in an epoch.
  int64_t size() const;
  const DatasetPtr& dataset() const;
  const DataLoaderOptions& options() const;
  /// The number of the running epoch, or of the next one between two.
  int64_t epoch() const;
  /// Chooses the next epoch, from its first batch; a loaded state of that same epoch keeps its place.
  void set_epoch(int64_t epoch);
  LoaderState state() const;
  /// The next walk continues there. Throws StateError when samples or batch size differ.
  void load_state(const LoaderState& state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
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
