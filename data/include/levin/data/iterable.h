#pragma once
// Data that can only be read from its beginning: streams, logs, archives.

#include <levin/core/generator.h>
#include <levin/data/batch.h>

#include <concepts>
#include <memory>
#include <optional>

namespace levin::data {

/// One reading of a shard. Used by one thread at a time.
class SampleStream {
 public:
  virtual ~SampleStream() = default;
  /// The next sample; nothing at the end.
  virtual std::optional<Sample> next() = 0;
  /// Drops `count` samples, or as many as there are; a resumed walk begins with it. Override it where one can jump.
  virtual void skip(int64_t count);
};

/// Samples in shards, such as files. Which shards there are depends on the data alone, so that the batches are the same
/// for any number of workers. Workers read different shards at the same time, ranks different shards altogether.
class IterableDataset {
 public:
  virtual ~IterableDataset() = default;
  virtual int64_t shards() const { return 1; }
  /// Opens a shard at its beginning; several threads open shards at once. `rng` is the shard's own in this epoch.
  virtual std::unique_ptr<SampleStream> open(int64_t shard, Generator rng) const = 0;
  /// The costly part of loading a sample (decoding, augmentation), which runs in several workers at once even where
  /// there is one shard. `rng` is this sample's own in this epoch.
  virtual Sample prepare(Sample sample, Generator& /*rng*/) const { return sample; }
};

using IterablePtr = std::shared_ptr<const IterableDataset>;

template <class D>
concept IsIterable = std::derived_from<std::remove_cvref_t<D>, IterableDataset>;

template <IsIterable D>
IterablePtr share(D&& dataset) {
  return std::make_shared<const std::remove_cvref_t<D>>(std::forward<D>(dataset));
}

}  // namespace levin::data
