#pragma once
// Gradients of units on their way to the ranks that own them, while backward still runs.

#include <functional>
#include <memory>

#include "src/flat_unit.h"

namespace levin::distributed {

/// When all gradients of a unit are ready, they are averaged over the ranks; each rank keeps its own part, as gradients
/// of its pieces, and the rest is freed. Units are exchanged in the order in which they were added, on all ranks.
class ShardReducer {
 public:
  struct Options {
    bool find_unused_parameters = false;
    std::function<void(std::size_t unit)> unit_ready{};  ///< backward needs its parameters no more
    std::function<void()> backward_done{};
  };
  ShardReducer(std::shared_ptr<ProcessGroup> group, Options options);
  ~ShardReducer();
  ShardReducer(const ShardReducer&) = delete;
  ShardReducer& operator=(const ShardReducer&) = delete;

  void add(std::shared_ptr<const FlatUnit> unit);
  /// While off, backward only adds up this rank's gradients on the parameters.
  void set_sync(bool on);
  bool sync() const;
  /// Averages what lies on the parameters of these units; units without any gradient on any rank are passed over.
  void reduce(const std::vector<const FlatUnit*>& units);
  /// Exchanges that began while backward was still running.
  int64_t overlapped() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace levin::distributed
