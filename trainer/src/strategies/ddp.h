#pragma once

#include <levin/distributed/ddp.h>

#include "rank_strategy.h"
#include "strategies.h"

namespace levin {

/// Several processes with a replica each, whose gradients are averaged while backward runs.
class Ddp : public RankStrategy {
 public:
  /// `hook` says how a bucket of gradients travels; null for the plain average.
  Ddp(World& world, Device device, bool find_unused, distributed::CommHook hook = {})
      : RankStrategy(world, device), find_unused_(find_unused), hook_(std::move(hook)) {}
  std::string name() const override { return "ddp"; }
  void reduce_in_backward(const std::vector<Parameter>& parameters) override;
  void finish_reduction(const std::vector<Parameter>& parameters) override;
  bool may_average_again() const override { return !hook_; }  // what a hook rounds is lost each time
  /// The order of the buckets: with three ranks or more a sum's bits depend on it.
  StateMap state() override;
  void load_state(const StateMap& state) override;

 protected:
  /// How a bucket of the gradients of these parameters travels; null for the plain average.
  virtual distributed::CommHook comm_hook(const std::vector<Parameter>&) { return hook_; }

 private:
  bool find_unused_;
  distributed::CommHook hook_;
  std::unique_ptr<distributed::Reducer> reducer_;
  std::vector<Parameter> watched_;  // by it
  bool reduced_ = false;            // in the backward of this window
  std::vector<std::int64_t> order_;  // of a resumed run, for its reducer
};

/// Ddp whose ranks step on gradients of their own after a while, and average their weights now and then.
std::unique_ptr<Strategy> make_post_local_sgd(const StrategyChoice& choice, bool find_unused);

}  // namespace levin
