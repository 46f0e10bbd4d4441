#include <fmt/format.h>
#include <fmt/ranges.h>
#include <levin/autograd/ops.h>
#include <levin/distributed/bagua.h>
#include <levin/optim/qadam.h>
#include <levin/trainer/optimizers.h>

#include <cmath>

#include "src/strategies/by_parameters.h"
#include "src/strategies/ddp.h"
#include "src/strategies/strategies.h"

namespace levin {
namespace {

using namespace distributed;

/// gradient_allreduce: the same as ddp.
class GradientAllreduce : public Ddp {
 public:
  GradientAllreduce(World& world, Device device) : Ddp(world, device, /*find_unused=*/false) {}
  std::string name() const override { return "bagua"; }
  bool may_average_again() const override { return false; }  // derived classes lose precision each time
};

/// Returns the ranks by machine if there are several machines and one has several ranks, else null.
ByteGradByMachine by_machine(const Strategy& strategy) {
  ProcessGroup& group = *strategy.process_group();
  const auto machines = ranks_by_machine(strategy);
  ByteGradByMachine hook;
  if (machines.size() == 1 || machines.size() == static_cast<std::size_t>(group.size())) return hook;
  std::vector<int> first;
  for (const std::vector<int>& ranks : machines) {
    first.push_back(ranks.front());
    if (const auto made = group.new_group(ranks)) hook.machine = made;
  }
  hook.leaders = group.new_group(first);
  return hook;
}

/// bytegrad: gradients in 8 bits; if machines have several ranks, only between machines.
class ByteGrad final : public GradientAllreduce {
 public:
  ByteGrad(World& world, Device device) : GradientAllreduce(world, device), hook_(by_machine(*this)) {}

 protected:
  CommHook comm_hook(const std::vector<Parameter>&) override {
    return hook_.machine ? CommHook(hook_) : CommHook(bytegrad_hook);
  }

 private:
  ByteGradByMachine hook_;
};

/// Scales the rate for steps on one rank's gradients. If noise dominates a gradient, Adam's second moments are N times
/// those of the average over N ranks, and the step, which is divided by their square root, is shorter by sqrt(N) (S.
/// Malladi et al., "On the SDEs and Scaling Rules for Adaptive Gradient Algorithms", NeurIPS 2022).
double factor_of_own_gradients(const StrategyOptions& o, int ranks) {
  return o.bagua.scale_lr == "sqrt" ? std::sqrt(ranks) : 1.0;
}

/// Each rank steps on its own gradients; information from the other ranks arrives through the weights.
class OwnGradients : public RankStrategy {
 public:
  OwnGradients(World& world, Device device, const StrategyOptions& o)
      : RankStrategy(world, device), factor_(factor_of_own_gradients(o, world_size())) {}
  void setup_optimizers(const Optimizers& optimizers) override { scale_rates(optimizers, factor_); }
  std::string name() const override { return "bagua"; }
  void reduce_in_backward(const std::vector<Parameter>&) override {}
  void finish_reduction(const std::vector<Parameter>&) override {}
  DivergentWeights* divergent_weights() override { return world_size() > 1 ? &consensus_ : nullptr; }

 private:
  double factor_;
  GroupConsensus consensus_{group()};
};

/// Returns 0 if another strategy saved the state.
std::int64_t steps_of(const StateMap& state) { return state.has("steps") ? state.get<std::int64_t>("steps") : 0; }

/// decentralized: averages weights before each step, during backward.
class Decentralized final : public OwnGradients {
 public:
  Decentralized(World& world, Device device, const StrategyOptions& o)
      : OwnGradients(world, device, o), peers_(o.bagua.peers == "shift_one" ? Peers::shift_one : Peers::all) {}
  void setup_optimizers(const Optimizers& optimizers) override {
    OwnGradients::setup_optimizers(optimizers);
    averages_.clear();
    steps_ = 0;
  }
  void reduce_in_backward(const std::vector<Parameter>& parameters) override {
    average(parameters).begin(trainable(parameters));
  }
  void before_step(const std::vector<Parameter>& parameters) override {
    average(parameters).finish(trainable(parameters));
    steps_ = average(parameters).steps();
  }
  StateMap state() override { return {{"steps", steps_}}; }
  void load_state(const StateMap& state) override { steps_ = steps_of(state); }

 private:
  PeerAverage& average(const std::vector<Parameter>& all) {
    return averages_.of(trainable(all), [&] {
      auto made = std::make_unique<PeerAverage>(shared_group(), peers_);
      made->set_steps(steps_);
      return made;
    });
  }

  Peers peers_;
  std::int64_t steps_ = 0;
  ByParameters<PeerAverage> averages_;
};

/// low_precision_decentralized: ring neighbours exchange each step's weight update in 8 bits.
class LowPrecision final : public OwnGradients {
 public:
  using OwnGradients::OwnGradients;
  void setup_optimizers(const Optimizers& optimizers) override {
    OwnGradients::setup_optimizers(optimizers);
    rings_.clear();
  }
  void before_step(const std::vector<Parameter>& parameters) override { ring(parameters).meet(trainable(parameters)); }
  void after_step(const std::vector<Parameter>& parameters) override {
    ring(parameters).exchange(trainable(parameters));
  }

 private:
  RingDifferences& ring(const std::vector<Parameter>& all) {
    return rings_.of(trainable(all), [&] { return std::make_unique<RingDifferences>(shared_group()); });
  }
  ByParameters<RingDifferences> rings_;
};

/// async: after a warm-up with averaged gradients, weights are averaged asynchronously to training.
class Async final : public GradientAllreduce {
 public:
  Async(World& world, Device device, const StrategyOptions& o)
      : GradientAllreduce(world, device),
        factor_(factor_of_own_gradients(o, world_size())),
        warmup_(o.bagua.warmup_steps),
        interval_(o.bagua.sync_interval_ms) {}
  void setup_optimizers(const Optimizers& optimizers) override {
    optimizers_ = &optimizers;
    averages_.clear();
    steps_ = 0;
  }
  void reduce_in_backward(const std::vector<Parameter>& parameters) override {
    if (steps_ < warmup_) Ddp::reduce_in_backward(parameters);
  }
  void finish_reduction(const std::vector<Parameter>& parameters) override {
    if (steps_ < warmup_) Ddp::finish_reduction(parameters);
  }
  void before_step(const std::vector<Parameter>&) override {
    if (steps_ == warmup_) scale_rates(*optimizers_, factor_);
  }
  void after_step(const std::vector<Parameter>& all) override {
    if (steps_++ < warmup_) return;
    const auto parameters = trainable(all);
    averages_.of(parameters, [&] { return std::make_unique<AsyncAverage>(shared_group(), interval_); })
        .after_step(parameters);
  }
  void end_training() override {
    averages_.each([](const std::vector<Parameter>& parameters, AsyncAverage& a) { a.settle(parameters); });
    averages_.clear();
  }
  DivergentWeights* divergent_weights() override { return world_size() > 1 ? &consensus_ : nullptr; }
  StateMap state() override {
    StateMap own = Ddp::state();
    own.set("steps", steps_);
    return own;
  }
  void load_state(const StateMap& state) override {
    Ddp::load_state(state);
    steps_ = steps_of(state);
  }

 private:
  const Optimizers* optimizers_ = nullptr;
  double factor_;
  std::int64_t warmup_, steps_ = 0;
  std::chrono::milliseconds interval_;
  ByParameters<AsyncAverage> averages_;
  GroupConsensus consensus_{group()};
};

/// qadam: averages gradients while the optimizer warms up, then the momentum in 8 bits.
class QAdamRanks final : public GradientAllreduce {
 public:
  using GradientAllreduce::GradientAllreduce;
  void setup_optimizers(const Optimizers& optimizers) override {
    optimizer_ = dynamic_cast<optim::QAdam*>(&optimizers.optimizer());
    if (optimizers.size() == 1 && optimizer_ != nullptr) return;
    throw UsageError(
        fmt::format("--bagua-algorithm qadam: it needs one optimizer, optim::QAdam, but configure_optimizers returned "
                    "{}. Return that one, with a scheduler if wanted.",
                    optimizers.size() == 1 ? optimizers.optimizer().name() : fmt::format("{}", optimizers.size())));
  }
  void reduce_in_backward(const std::vector<Parameter>& parameters) override {
    if (!optimizer_->is_frozen()) Ddp::reduce_in_backward(parameters);
  }
  void finish_reduction(const std::vector<Parameter>& parameters) override {
    if (!optimizer_->is_frozen()) Ddp::finish_reduction(parameters);
  }
  void before_step(const std::vector<Parameter>& all) override {
    if (!optimizer_->is_frozen()) return;
    const auto parameters = trainable(all);
    for (const Parameter& p : parameters)
      if (!p.grad().defined()) p.set_grad(zeros(p.sizes(), like(p)));
    optimizer_->to_momentum();
    exchange_gradients(group(), parameters, bytegrad_hook);
  }

 private:
  optim::QAdam* optimizer_ = nullptr;
};

using Make = std::unique_ptr<Strategy> (*)(const StrategyChoice& choice);

template <class S>
std::unique_ptr<Strategy> plain(const StrategyChoice& c) {
  return std::make_unique<S>(c.world(), c.own_device());
}

std::unique_ptr<Strategy> decentralized(const StrategyChoice& c) {
  World& world = c.world();
  if (c.options->bagua.peers == "shift_one" && world.info.world_size > 1 && world.info.world_size % 2 != 0)
    throw UsageError(fmt::format("--bagua-peers shift_one: it makes pairs, and there are {} ranks. Use an even number, "
                                 "or --bagua-peers all.",
                                 world.info.world_size));
  return std::make_unique<Decentralized>(world, c.own_device(), *c.options);
}

template <class S>
std::unique_ptr<Strategy> with_options(const StrategyChoice& c) {
  return std::make_unique<S>(c.world(), c.own_device(), *c.options);
}

struct Algorithm {
  std::string_view name;
  Make make;
};
constexpr Algorithm kAlgorithms[] = {
    {"gradient_allreduce", plain<GradientAllreduce>},
    {"bytegrad", plain<ByteGrad>},
    {"decentralized", decentralized},
    {"low_precision_decentralized", with_options<LowPrecision>},
    {"qadam", plain<QAdamRanks>},
    {"async", with_options<Async>},
};

}  // namespace

void check_bagua(const StrategyOptions& o) {
  if (std::ranges::find(kAlgorithms, o.bagua.algorithm, &Algorithm::name) == std::end(kAlgorithms)) {
    std::vector<std::string_view> names;
    for (const Algorithm& a : kAlgorithms) names.push_back(a.name);
    throw UsageError(fmt::format("--bagua-algorithm {}: there are {}. Use one of them.", o.bagua.algorithm,
                                 fmt::join(names, ", ")));
  }
  if (o.bagua.peers != "all" && o.bagua.peers != "shift_one")
    throw UsageError(fmt::format("--bagua-peers {}: choose all or shift_one.", o.bagua.peers));
  const bool own_gradients = o.bagua.algorithm.ends_with("decentralized") || o.bagua.algorithm == "async";
  if (o.bagua.scale_lr != "none" && (o.bagua.scale_lr != "sqrt" || !own_gradients))
    throw UsageError(fmt::format("--bagua-scale-lr {}: choose none, or sqrt with --bagua-algorithm decentralized, "
                                 "low_precision_decentralized or async.",
                                 o.bagua.scale_lr));
  if (o.bagua.warmup_steps < 0)
    throw UsageError(fmt::format("--bagua-warmup-steps {}: give 0 or more.", o.bagua.warmup_steps));
  if (o.bagua.sync_interval_ms < 0)
    throw UsageError(fmt::format("--bagua-sync-interval-ms {}: give 0 or more.", o.bagua.sync_interval_ms));
}

std::unique_ptr<Strategy> make_bagua(const StrategyChoice& choice) {
  return std::ranges::find(kAlgorithms, choice.options->bagua.algorithm, &Algorithm::name)->make(choice);
}

}  // namespace levin
