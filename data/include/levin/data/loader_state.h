#pragma once
// The state of a DataLoader: its position in the data.

#include <levin/core/state_map.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace levin::data {

using std::int64_t;

/// The position of a loader: its epoch and the number of batches returned in it, not of those prefetched. A loader of
/// the same data, batch size and sampler that loads it continues with the next batch, to the bit, with any number of
/// workers.
struct LoaderState {
  int64_t epoch = 0;       ///< counted from 0
  int64_t batches = 0;     ///< batches returned in the epoch
  std::uint64_t seed = 0;  ///< of the order and of augmentations, see DataLoaderOptions
  /// Seed of a sampler that the loader was given; empty if there is none, and in states of versions in which such a
  /// sampler had seed 0 unless it was given one.
  std::optional<std::uint64_t> sampler_seed{};
  int64_t samples = 0;  ///< in an epoch (or shards of an iterable dataset), to check that both loaders agree
  int64_t batch_size = 0;            ///< of the loader, to check that both loaders agree
  int64_t turns = 0;                 ///< iterable datasets: shards asked so far, those at their end included
  std::vector<LoaderState> parts{};  ///< combined loaders: the state of each
  std::vector<int64_t> ended{};      ///< combined loaders: 1 for each loader that was at its end
  friend bool operator==(const LoaderState& a, const LoaderState& b);

  /// Returns the state at the beginning of an epoch of the same data, with the same seeds.
  LoaderState at_epoch(int64_t number) const;
  /// Replaces the seeds by those of a state of the same loaders.
  void take_seeds(const LoaderState& other);
  /// Returns the state as entries of a checkpoint.
  StateMap to_map() const;
  /// Throws StateError for a map that to_map() did not make.
  static LoaderState from_map(const StateMap& map);
};

}  // namespace levin::data
