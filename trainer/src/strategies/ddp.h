#pragma once

#include <levin/distributed/ddp.h>

#include "src/strategies/rank_strategy.h"
#include "src/strategies/strategies.h"

namespace levin {

/// Several processes with one replica each, whose gradients are averaged during backward.
class Ddp : public RankStrategy {
 public:
  /// `hook` implements the communication of a gradient bucket; null for the plain average.
  Ddp(World& world, Device device, bool find_unused, distributed::CommHook hook = {})
      : RankStrategy(world, device), find_unused_(find_unused), hook_(std::move(hook)) {}
  std::string name() const override { return "ddp"; }
  void reduce_in_backward(const std::vector<Parameter>& parameters) override;
  void finish_reduction(const std::vector<Parameter>& parameters) override;
  bool may_average_again() const override { return !hook_; }  // a hook loses precision each time
  /// Order of the buckets: with three or more ranks the bits of a sum depend on it.
  StateMap state() override;
  void load_state(const StateMap& state) override;

 protected:
  /// Communication hook for the gradient buckets of these parameters; null for the plain average.
  virtual distributed::CommHook comm_hook(const std::vector<Parameter>&) { return hook_; }

 private:
  bool find_unused_;
  distributed::CommHook hook_;
  std::unique_ptr<distributed::Reducer> reducer_;
  std::vector<Parameter> watched_;   // parameters of the reducer
  bool reduced_ = false;             // gradients were reduced in the backward of this window
  std::vector<std::int64_t> order_;  // bucket order of a resumed run, for its reducer
};

/// Ddp whose ranks step on local gradients after a while and average their weights periodically.
std::unique_ptr<Strategy> make_post_local_sgd(const StrategyChoice& choice, bool find_unused);

}  // namespace levin
