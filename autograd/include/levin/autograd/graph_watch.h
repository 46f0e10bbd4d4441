#pragma once
// Finds a graph that is kept alive: a list of losses holds every step's history until it is dropped.

#include <cstdint>
#include <string>

namespace levin {

/// While a GraphWatch is alive, it tracks the operations that any thread has recorded since it was created and that are
/// still alive. Meanwhile, recording takes one more lock.
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

  /// Returns the number of recorded operations that are alive.
  std::int64_t live() const;
  /// Describes the operation that was recorded first and its age, counted in operations; empty if none is left.
  std::string oldest() const;

 private:
  std::uint64_t first_;  ///< number of the first operation that is tracked
};

}  // namespace levin
