#pragma once

#include <levin/distributed/ddp.h>

#include "rank_strategy.h"

namespace levin {

/// Several processes with a replica each, whose gradients are averaged while backward runs.
class Ddp : public RankStrategy {
 public:
  Ddp(World& world, Device device, bool find_unused) : RankStrategy(world, device), find_unused_(find_unused) {}
  std::string name() const override { return "ddp"; }
  void reduce_in_backward(const std::vector<Parameter>& parameters) override;
  void finish_reduction(const std::vector<Parameter>& parameters) override;
  bool may_average_again() const override { return true; }
  /// The order of the buckets: with three ranks or more a sum's bits depend on it.
  StateMap state() override;
  void load_state(const StateMap& state) override;

 protected:
  /// How a bucket of gradients travels; null for the plain average.
  virtual distributed::CommHook comm_hook() { return {}; }

 private:
  bool find_unused_;
  std::unique_ptr<distributed::Reducer> reducer_;
  std::vector<Parameter> watched_;  // by it
  bool reduced_ = false;            // in the backward of this window
  std::vector<std::int64_t> order_;  // of a resumed run, for its reducer
};

}  // namespace levin
