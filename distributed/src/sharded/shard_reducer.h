#pragma once
// Averages gradients and scatters them to the ranks that own them, while backward runs.

#include <functional>
#include <memory>

#include "src/sharded/flat_unit.h"

namespace levin::distributed {

/// When all gradients of a unit are ready, they are averaged over the ranks. Each rank keeps its own part, as gradients
/// of its pieces, and the rest is freed. Units are exchanged in the order in which they were added, on all ranks.
class ShardReducer {
 public:
  struct Options {
    bool find_unused_parameters = false;
    std::function<void(std::size_t unit)> unit_ready{};  ///< called when backward needs the unit's parameters no more
    std::function<void()> backward_done{};
  };
  ShardReducer(std::shared_ptr<ProcessGroup> group, Options options);
  ~ShardReducer();
  ShardReducer(const ShardReducer&) = delete;
  ShardReducer& operator=(const ShardReducer&) = delete;

  void add(std::shared_ptr<const FlatUnit> unit);
  /// While off, backward only accumulates this rank's gradients on the parameters.
  void set_sync(bool on);
  bool sync() const;
  /// Averages the gradients on the parameters of these units; skips units without a gradient on any rank.
  void reduce(const std::vector<const FlatUnit*>& units);
  /// Number of exchanges so far that began while backward was running.
  int64_t overlapped() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace levin::distributed
