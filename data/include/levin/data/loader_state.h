#pragma once
// A place in the data.

#include <levin/core/state_map.h>

#include <cstdint>
#include <vector>

namespace levin::data {

using std::int64_t;

/// `batches` counts those handed out, not those prefetched. A loader of the same data, batch size and sampler that
/// loads it continues with the next batch, bit by bit the same, with any number of workers.
struct LoaderState {
  int64_t epoch = 0;
  int64_t batches = 0;
  std::uint64_t seed = 0;
  int64_t samples = 0;  ///< in an epoch, for the check that both loaders agree; the shards of an iterable dataset
  int64_t batch_size = 0;
  int64_t turns = 0;                 ///< iterable datasets: shards asked so far, those at their end included
  std::vector<LoaderState> parts{};  ///< combined loaders: the place in each
  std::vector<int64_t> ended{};      ///< combined loaders: 1 for each part that was at its end
  friend bool operator==(const LoaderState& a, const LoaderState& b);

  /// The beginning of an epoch of the same data, with the same seeds.
  LoaderState at_epoch(int64_t number) const;
  StateMap to_map() const;
  /// Throws StateError for a map that is none of to_map()'s.
  static LoaderState from_map(const StateMap& map);
};

}  // namespace levin::data
