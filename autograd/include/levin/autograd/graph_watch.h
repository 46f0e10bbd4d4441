#pragma once
// Finding the graph that somebody keeps: a list of losses holds every step's history until it is dropped.

#include <cstdint>
#include <string>

namespace levin {

/// While one is alive, it knows the operations that any thread has recorded since it was made and that are still there.
/// Recording costs a lock more meanwhile.
///
///     GraphWatch watch;
///     train_one_epoch();
///     if (watch.live() > 0) std::cerr << watch.oldest() << '\n';   // "linear, recorded 4093 operations ago"
class GraphWatch {
 public:
  GraphWatch();
  ~GraphWatch();
  GraphWatch(const GraphWatch&) = delete;
  GraphWatch& operator=(const GraphWatch&) = delete;

  /// How many recorded operations are alive.
  std::int64_t live() const;
  /// The one recorded first and how long ago, counted in operations; empty where none is left.
  std::string oldest() const;

 private:
  std::uint64_t first_;  ///< operations from this number on are of interest
};

}  // namespace levin
