#include <levin/trainer/manual_optimization.h>

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/optim/clip.h>
#include <levin/trainer/strategies/sharded_optimizer.h>
#include <levin/trainer/train_state.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace levin {

Toggled::Toggled(ManualOptimization& owner, std::size_t index, bool sync_grad)
    : owner_(&owner), synced_before_(std::exchange(owner.syncs_, owner.syncs_ && sync_grad)) {
  const ShardedOptimizer* const sharded = owner.strategy_.sharded_optimizer();
  const auto parameters = [&](std::size_t i) {
    const auto stepped = owner.optimizers().optimizer(i).parameters();
    return sharded ? sharded->full_parameters(stepped) : stepped;
  };
  const auto own = parameters(index);
  for (std::size_t i = 0; i < owner.optimizers().size(); ++i) {
    if (i == index) continue;
    for (const Tensor& p : parameters(i)) {
      if (std::ranges::any_of(own, [&](const Tensor& mine) { return mine.is_same(p); })) continue;
      before_.emplace_back(p, p.requires_grad());
      before_.back().first.requires_grad_(false);
    }
  }
}

Toggled::Toggled(Toggled&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)),
      synced_before_(other.synced_before_),
      before_(std::exchange(other.before_, {})) {}

Toggled::~Toggled() {
  if (owner_) owner_->syncs_ = synced_before_;
  // In reverse order: a parameter of two optimizers was recorded twice, and the first value is the original one.
  for (auto it = before_.rbegin(); it != before_.rend(); ++it) it->first.requires_grad_(it->second);
}

void OptimizerHandle::zero_grad(bool set_to_none) const { owner_->zero_grad(index_, set_to_none); }
void OptimizerHandle::step() const { owner_->step(index_, {}); }
Tensor OptimizerHandle::step(const optim::Optimizer::Closure& closure) const { return owner_->step(index_, closure); }
Toggled OptimizerHandle::toggle_model(bool sync_grad) const { return Toggled(*owner_, index_, sync_grad); }
optim::Optimizer& OptimizerHandle::optimizer() const { return owner_->optimizers().optimizer(index_); }
void OptimizerHandle::clip_gradients(double value, const std::string& algorithm) const {
  owner_->clip_gradients(index_, value, algorithm);
}

void refuse_own_weights(Strategy& strategy, const PrecisionPlugin& precision) {
  if (!strategy.sharded_optimizer() || !precision.has_own_weights()) return;
  throw UsageError(
      fmt::format("[fit] --precision {} steps on its own copy of the weights, which --strategy {} does not shard. Use "
                  "16-mixed or bf16-mixed, or --strategy ddp.",
                  precision.name(), strategy.name()));
}

ManualOptimization::ManualOptimization(Optimizers& optimizers, Strategy& strategy, PrecisionPlugin& precision,
                                       StepHooks& hooks, ScaleMoves moves)
    : optimizers_(optimizers),
      strategy_(strategy),
      precision_(precision),
      hooks_(hooks),
      moves_(moves),
      gathered_(optimizers.size()) {
  refuse_own_weights(strategy, precision);
  if (optimizers.size() == 1)
    precision.attach(optimizers.optimizer());
  else if (precision.has_own_weights())
    throw UsageError(
        fmt::format("[fit] precision {} keeps master weights for one optimizer, and there are {}. Use "
                    "16-mixed.",
                    precision.name(), optimizers.size()));
}

void ManualOptimization::backward(const Tensor& loss) {
  if (loss.numel() != 1)
    throw ShapeError(fmt::format("[manual_backward] the loss has shape {}. Give one number, e.g. its mean.",
                                 to_string(loss.sizes())));
  const Tensor scaled = precision_.scale(loss);
  hooks_.on_before_backward(scaled);
  gradients_are_added();
  hooks_.backward(scaled);
  hooks_.on_after_backward();
}

/// Averages that may be averaged again include what a backward adds to them.
void ManualOptimization::gradients_are_added() {
  if (!strategy_.may_average_again()) return;
  for (Gathered& g : gathered_) g.averaged = false;
}

void ManualOptimization::backward_of_only(const Tensor& scaled, bool average) {
  gradients_are_added();
  if (!average || !syncs_ || !strategy_.may_average_again()) return scaled.backward();
  const auto parameters = optimizers_.optimizer().parameters();
  strategy_.reduce_in_backward(parameters);
  scaled.backward();
  strategy_.finish_reduction(parameters);
  gathered_.front().averaged = true;
}

void ManualOptimization::zero_grad(std::size_t i, bool set_to_none) {
  optimizers_.optimizer(i).zero_grad(set_to_none);
  precision_.zero_grad();
  if (auto* sharded = strategy_.sharded_optimizer()) sharded->zero_grad(optimizers_.optimizer(i).parameters());
  gathered_[i] = {};
}

const Tensor& ManualOptimization::unscale(std::size_t i) {
  if (!syncs_ && strategy_.sharded_optimizer() && strategy_.world_size() > 1)
    throw UsageError(
        fmt::format("[toggle_model] this step has no sync_grad, but --strategy {} needs the gradients of all ranks in "
                    "every step. Set sync_grad to true for the batches that step.",
                    strategy_.name()));
  Gathered& g = gathered_[i];
  const auto parameters = optimizers_.optimizer(i).parameters();
  const bool exchanges = syncs_ && !g.averaged, first = !g.found;
  if (exchanges) {
    strategy_.finish_reduction(parameters);
    g.averaged = true;
  }
  if (first) g.found = precision_.unscale(parameters);
  if (g.found->defined() && syncs_ && (exchanges || first)) g.found = strategy_.reduce(*g.found, ReduceOp::max);
  return *g.found;
}

void ManualOptimization::clip_gradients(std::size_t i, double value, const std::string& algorithm) {
  if (algorithm != "norm" && algorithm != "value")
    throw UsageError(fmt::format("[clip_gradients] algorithm {}: choose norm or value.", algorithm));
  unscale(i);
  const auto parameters = optimizers_.optimizer(i).parameters();
  if (algorithm == "value")
    optim::clip_grad_value_(parameters, value);
  else
    strategy_.clip_grad_norm(parameters, value);
}

Tensor ManualOptimization::step(std::size_t i, const optim::Optimizer::Closure& closure) {
  optim::Optimizer& optimizer = optimizers_.optimizer(i);
  const Tensor loss = closure ? closure() : Tensor();
  const Tensor found = unscale(i);
  hooks_.on_before_optimizer_step(optimizer);
  const auto parameters = optimizer.parameters();
  strategy_.before_step(parameters);
  if (found.defined())
    optimizer.step_unless(found);
  else
    optimizer.step();
  strategy_.after_step(parameters);
  precision_.after_step();
  // These gradients have been used by a step; another backward adds scaled gradients to them.
  gathered_[i] = {};
  own_found_ = own_found_ || (found.defined() && !syncs_);
  if (moves_ == ScaleMoves::with_batch) open_.push_back({i, found.defined() ? HostRead(found) : HostRead(0.0)});
  const no_grad guard;
  if (!found_ || !found_->defined())
    found_ = found;
  else if (found.defined())
    found_ = maximum(*found_, found);
  if (moves_ == ScaleMoves::with_step && syncs_) finish_batch();
  return loss;
}

void ManualOptimization::finish_batch() {
  if (!found_) return;
  Tensor found = *std::exchange(found_, std::nullopt);
  // All ranks share one scale.
  if (std::exchange(own_found_, false) && found.defined()) found = strategy_.reduce(found, ReduceOp::max);
  precision_.update(found);
}

void ManualOptimization::settle(TrainState& state, bool wait) {
  state.optimizer_steps.resize(optimizers_.size());
  for (; !open_.empty() && (wait || open_.front().skipped.ready()); open_.pop_front())
    if (open_.front().skipped.value() == 0) ++state.optimizer_steps[open_.front().optimizer];
}

}  // namespace levin
