#pragma once
// State of a DataLoader: a source of batches, and where the next iteration begins.

#include "batch_source.h"

#include <chrono>
#include <functional>

namespace levin::data {

inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct DataLoader::Impl {
  explicit Impl(const DataLoaderOptions& o) : options(o) {}

  /// Begins the walk that was chosen, or the next epoch.
  void begin_walk();
  /// The next batch, or nothing, which ends the walk.
  std::optional<Batch> pull();
  bool running() const { return walking && !chosen; }
  void choose(const LoaderState& place) {
    next_place = place;
    chosen = true;
  }

  DataLoaderOptions options;  // the source refers to them
  std::unique_ptr<detail::BatchSource> source;
  LoaderState next_place;  // where the next walk begins
  bool chosen = false;     // by set_epoch, load_state or begin_at
  bool walking = false;
  std::uint64_t walk = 0;  // tells the iterators apart
  LoaderTimes times;
  double began = 0;                                // by the clock
  std::function<double()> clock = steady_seconds;  // tests set another
};

}  // namespace levin::data
