#pragma once
// State of a DataLoader: a source of batches, and the position at which the next iteration begins.

#include "batch_source.h"

#include <levin/core/duration.h>

#include <functional>

namespace levin::data {

struct DataLoader::Impl {
  explicit Impl(const DataLoaderOptions& o) : options(o) {}

  /// Begins at next_place if one was chosen, else the next epoch.
  void begin_walk();
  /// Returns the next batch; nothing at the end, which ends the iteration.
  std::optional<Batch> pull();
  bool running() const { return walking && !chosen; }
  /// Position of the running iteration or of the next one; its seeds are the source's.
  LoaderState place() const { return running() ? source->place() : next_place; }
  void choose(const LoaderState& place) {
    next_place = place;
    chosen = true;
  }

  DataLoaderOptions options;  // the source refers to them
  std::unique_ptr<detail::BatchSource> source;
  LoaderState next_place;  // where the next iteration begins
  bool chosen = false;     // next_place was set by set_epoch, load_state or begin_at
  bool walking = false;
  std::uint64_t walk = 0;  // counts iterations, so that old iterators are detected
  LoaderTimes times;
  double began = 0;                                   // reading of the clock at the beginning
  std::function<double()> clock = monotonic_seconds;  // tests set another
};

}  // namespace levin::data
