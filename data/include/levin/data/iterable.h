#pragma once
// Iterable datasets: data that is read from its beginning, such as streams, logs and archives.

#include <levin/core/generator.h>
#include <levin/data/batch.h>

#include <concepts>
#include <memory>
#include <optional>

namespace levin::data {

/// A reader of one shard. One thread uses it at a time.
class SampleStream {
 public:
  virtual ~SampleStream() = default;
  /// Returns the next sample, or nothing at the end.
  virtual std::optional<Sample> next() = 0;
  /// Skips `count` samples, or all if there are fewer, when an epoch is resumed. Override it if the reader can seek.
  virtual void skip(int64_t count);
};

/// Samples in shards, such as files. The shards depend on the data alone, so that the batches are the same for any
/// number of workers. Workers read different shards at the same time; each rank reads shards of its own.
class IterableDataset {
 public:
  virtual ~IterableDataset() = default;
  /// Number of shards, 1 or more.
  virtual int64_t shards() const { return 1; }
  /// Opens a shard at its beginning; several threads call it at the same time. `rng` belongs to this shard and epoch.
  virtual std::unique_ptr<SampleStream> open(int64_t shard, Generator rng) const = 0;
  /// Does the costly part of loading a sample (decoding, augmentation), which runs in several workers at the same time
  /// even with one shard. `rng` belongs to this sample and epoch.
  virtual Sample prepare(Sample sample, Generator& /*rng*/) const { return sample; }
};

/// A dataset that several loaders may hold.
using IterablePtr = std::shared_ptr<const IterableDataset>;

template <class D>
concept IsIterable = std::derived_from<std::remove_cvref_t<D>, IterableDataset>;

/// Moves or copies a dataset into a shared pointer.
template <IsIterable D>
IterablePtr share(D&& dataset) {
  return std::make_shared<const std::remove_cvref_t<D>>(std::forward<D>(dataset));
}

}  // namespace levin::data
