#include <levin/trainer/step_runner.h>

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/autograd/row_gradient.h>
#include <levin/trainer/strategies/replicas.h>
#include <levin/trainer/strategies/sharded_optimizer.h>

#include <fmt/format.h>

#include <utility>

#include "src/loops/replica_run.h"
#include "src/loops/staged_step.h"
#include "src/loops/step_capture.h"
#include "src/profilers/actions.h"

namespace levin {

StepRunner::StepRunner(LevinModule& module, Optimizers& optimizers, Strategy& strategy, PrecisionPlugin& precision,
                       StepHooks& hooks, StepOptions options)
    : module_(module),
      optimizers_(optimizers),
      strategy_(strategy),
      precision_(precision),
      hooks_(hooks),
      options_(std::move(options)) {
  if (options_.capture) {
    StepCapture::check(module, strategy, precision);
    capture_ = std::make_unique<StepCapture>();
    capture_->begin_epoch(optimizers_);
  }
  if (!module_.automatic_optimization) {
    if (strategy_.replicas())
      throw UsageError(
          fmt::format("[fit] {} uses manual optimization, but --strategy {} runs its step once per device before any "
                      "backward. Use --strategy ddp, or wrap networks of it by distributed::DataParallel.",
                      module_.type_name(), strategy_.name()));
    if (strategy_.stages())
      throw UsageError(
          fmt::format("[fit] {} uses manual optimization, but --strategy {} has its own order of forward and backward. "
                      "Use --strategy ddp, or distributed::Pipeline in training_step.",
                      module_.type_name(), strategy_.name()));
    manual_ = std::make_unique<ManualOptimization>(optimizers_, strategy_, precision_, hooks_);
    return;
  }
  if (optimizers_.size() > 1)
    throw UsageError(
        fmt::format("[fit] configure_optimizers returned {} optimizers, and automatic optimization steps one. Set "
                    "automatic_optimization to false and step them in training_step.",
                    optimizers_.size()));
  refuse_own_weights(strategy, precision);
  take_parameters();
}

StepRunner::~StepRunner() = default;

void StepRunner::begin_epoch() {
  if (capture_) capture_->begin_epoch(optimizers_);
}

void StepRunner::take_parameters() {
  if (manual_) return;
  std::size_t count = 0;
  for (const auto& group : optimizers_.optimizer().param_groups()) count += group.params.size();
  if (count == parameters_.size()) return;
  if (auto* sharded = strategy_.sharded_optimizer(); sharded && !parameters_.empty())
    sharded->take_parameters(optimizers_);
  precision_.attach(optimizers_.optimizer());
  parameters_ = optimizers_.optimizer().parameters();
}

StepOutput StepRunner::run(const Batch& given, int index, bool last, TrainState& state) {
  const Batch batch = precision_.convert(given);
  state.optimizer_steps.resize(optimizers_.size());
  const std::int64_t samples = batch.size();
  const bool closes = last || state.micro + 1 == options_.accumulate_grad_batches;
  if (manual_) return run_manual(batch, index, state);
  if (capture_ && capture_pass(batch, index, state)) return run_captured(batch, samples, closes, state);
  Stages* const stages = strategy_.stages();
  const StepOutput out = stages ? run_stages(*stages, batch, index, state) : forward(batch, index, state);
  if (!out.empty()) hooks_.on_loss(out.loss());
  if (!stages && !out.empty()) backward(out, samples, closes, state);
  if (out.empty() && strategy_.world_size() > 1) refuse_no_loss();
  end_batch(samples, closes, state);
  return out.detached();
}

void StepRunner::end_batch(std::int64_t samples, bool closes, TrainState& state) {
  state.samples += samples;
  ++state.micro;
  if (closes) close_window(state);
}

void StepRunner::refuse_no_loss() const {
  throw UsageError(
      fmt::format("[training_step] {} returned no loss for a batch, or one of weight 0, on rank {}. With several ranks "
                  "no rank can skip a batch, since all of them reduce gradients: return a loss times 0.",
                  module_.type_name(), strategy_.rank()));
}

StepOutput StepRunner::forward(const Batch& batch, int index, const TrainState& state) {
  if (state.micro == 0) strategy_.broadcast_buffers(module_);
  const ProfileScope profile(action_of(module_, "training_step"), Phase::forward);
  const auto scope = precision_.step_scope();
  return run_training_step(module_, strategy_, batch, index);
}

StepOutput StepRunner::run_manual(const Batch& batch, int index, TrainState& state) {
  const StepOutput out = forward(batch, index, state);
  manual_->finish_batch();
  if (!out.empty()) hooks_.on_loss(out.loss());
  state.samples += batch.size();
  ++state.global_step;
  manual_->settle(state, /*wait=*/false);
  return out.detached();
}

void StepRunner::backward(const StepOutput& out, std::int64_t samples, bool closes, TrainState& state) {
  check_loss(out.loss());
  const double weight = out.weight().value_or(static_cast<double>(samples));
  if (!(weight > 0)) return strategy_.world_size() > 1 ? refuse_no_loss() : void();
  if (state.window_nominal == 0) zero_grad();
  weigh(out, weight, state);
  const Tensor loss = share_of(out, weight, state.window_nominal);
  backward(loss, closes, [&] { module_.backward(loss); });
}

/// Counts the weight of a loss, which may begin a window.
void StepRunner::weigh(const StepOutput& out, double weight, TrainState& state) {
  if (state.window_nominal == 0) {
    // The weights of all ranks share one scale, their average. A window of one batch counts as its mean, as in any data
    // parallelism.
    weighs_ = options_.accumulate_grad_batches > 1 || out.weight();
    const double common = weighs_ ? strategy_.reduce(weight, ReduceOp::avg) : weight;
    state.window_nominal = common * static_cast<double>(options_.accumulate_grad_batches);
    state.window_weight = 0;
  }
  state.window_weight += weight;
}

Tensor StepRunner::share_of(const StepOutput& out, double weight, double nominal) {
  const double share = weight / nominal;
  return precision_.scale(share == 1.0 ? out.loss() : out.loss() * share);
}

void StepRunner::backward(const Tensor& loss, bool closes, const std::function<void()>& run) {
  if (closes) {
    take_parameters();
    strategy_.reduce_in_backward(parameters_);
  }
  hooks_.on_before_backward(loss);
  {
    const ProfileScope profile([&] { return fmt::format("[Strategy]{}.backward", strategy_.name()); }, Phase::backward);
    run();
  }
  hooks_.on_after_backward();
}

/// Makes sure that a captured pass can be replayed for the batch. Returns false if its step is to run as usual.
bool StepRunner::capture_pass(const Batch& batch, int index, const TrainState& state) {
  if (capture_->find(batch, state.window_nominal)) return true;
  CapturedPass* const pass = capture_->begin(batch, state.window_nominal);
  if (!pass) return false;
  const std::vector<Parameter> all = module_.parameters();
  StepCapture::refuse_rows(all);
  const Gradients before(all);
  ReplicaRun logs(module_);
  try {
    pass->forward.emplace(capture([&] {
      const auto step = [&](std::size_t, LevinModule&, const Batch& inputs) {
        pass->output = forward(inputs, index, state);
        return std::vector<Tensor>();
      };
      logs.step(0, module_, pass->batch, step);
      pass->weight = pass->output.weight().value_or(static_cast<double>(batch.size()));
      if (pass->output.empty() || !(pass->weight > 0)) return;
      check_loss(pass->output.loss());
      const double window = static_cast<double>(options_.accumulate_grad_batches);
      const double nominal = state.window_nominal > 0 ? state.window_nominal : pass->weight * window;
      pass->loss = share_of(pass->output, pass->weight, nominal);
    }));
    if (!pass->loss.defined()) {
      capture_->drop_last();
      return false;
    }
    const auto backward = [&] {
      if (state.window_nominal == 0) clear_gradients();
      module_.backward(pass->loss);
    };
    pass->backward.emplace(capture(backward, &*pass->forward));
    StepCapture::refuse_rows(all);
  } catch (...) {
    capture_->drop_last();
    before.set();
    throw;
  }
  pass->logged = logs.logged();
  pass->made = Gradients(all);
  pass->added_to = before;
  pass->added_to.keep_equal(pass->made);
  before.set();  // until the replay
  return true;
}

StepOutput StepRunner::run_captured(const Batch& batch, std::int64_t samples, bool closes, TrainState& state) {
  CapturedPass& pass = *capture_->find(batch, state.window_nominal);
  {
    const ProfileScope profile(action_of(module_, "training_step"), Phase::forward);
    pass.load(batch);
    pass.forward->replay();
  }
  if (MetricStore* metrics = module_.link_.metrics()) metrics->log(pass.logged);
  hooks_.on_loss(pass.output.loss());
  if (state.window_nominal == 0) hooks_.on_before_zero_grad();
  weigh(pass.output, pass.weight, state);
  backward(pass.loss, closes, [&] {
    pass.backward->replay();
    pass.made.set();
  });
  const StepOutput out = pass.output.copied();
  end_batch(samples, closes, state);
  return out;
}

void StepRunner::zero_grad() {
  hooks_.on_before_zero_grad();
  clear_gradients();
}

void StepRunner::clear_gradients() {
  const ProfileScope profile(action_of(module_, "optimizer_zero_grad"), Phase::optimizer);
  module_.optimizer_zero_grad(optimizers_.optimizer());
  precision_.zero_grad();
  if (auto* sharded = strategy_.sharded_optimizer()) sharded->zero_grad(parameters_);
}

/// Runs forward and backward of a batch whose micro-batches pass through several ranks.
StepOutput StepRunner::run_stages(Stages& stages, const Batch& batch, int index, TrainState& state) {
  if (state.micro == 0) strategy_.broadcast_buffers(module_);
  if (const bool begins = state.window_nominal == 0; begins) {
    zero_grad();
    weighs_ = false;  // only rank zero has losses
    state.window_weight = 0;
  }
  StagedStep step(module_, strategy_, precision_, hooks_,
                  {.index = index,
                   .samples = batch.size(),
                   .window = options_.accumulate_grad_batches,
                   .nominal = state.window_nominal});
  stages.run_batch(batch, step);
  hooks_.on_after_backward();
  const StagedStep::Result result = step.share();
  if (result.output.empty()) return {};
  state.window_nominal = result.nominal;
  state.window_weight += result.weight;
  return result.output;
}

/// Reduces found_inf over all ranks. With stages a rank may have no gradients.
Tensor StepRunner::of_all_ranks(const Tensor& found_inf) {
  const bool known = found_inf.defined();
  if (strategy_.stages() ? !strategy_.any(known) : !known) return {};
  return strategy_.reduce(known ? found_inf : zeros({}, {.dtype = kFloat32, .device = strategy_.device()}),
                          ReduceOp::max);
}

void StepRunner::close_window(TrainState& state) {
  if (state.window_nominal > 0) {
    const ProfileScope profile([&] { return fmt::format("[Strategy]{}.optimizer_step", strategy_.name()); },
                               Phase::optimizer);
    take_parameters();
    if (schedules_steps()) settle(state);
    strategy_.finish_reduction(parameters_);
    const Tensor found_inf = of_all_ranks(precision_.unscale(parameters_));
    // Start the transfer now, ahead of the step's work.
    open_.push_back({found_inf.defined() ? HostRead(found_inf) : HostRead(0.0), state.global_step + 1});
    hooks_.on_unscaled(open_.back().skipped);
    const double weight = weighs_ ? strategy_.reduce(state.window_weight, ReduceOp::avg) : state.window_weight;
    if (weight != state.window_nominal) correct_gradients(state.window_nominal / weight);
    hooks_.on_before_optimizer_step(optimizers_.optimizer());
    const auto clip_and_step = [&] {
      module_.configure_gradient_clipping(optimizers_.optimizer(), options_.gradient_clip_val,
                                          options_.gradient_clip_algorithm, strategy_);
      strategy_.before_step(parameters_);
      step_window(open_.back(), found_inf);
    };
    capture_ && !found_inf.defined() ? capture_->run_step(parameters_, clip_and_step) : clip_and_step();
    strategy_.after_step(parameters_);
    precision_.after_step();
    precision_.update(found_inf);
    // A scheduler moves at the same place regardless of timing: here if no flag has to arrive, else before the next
    // window's step.
    if (!found_inf.defined() || found_inf.device() == kCpu)
      settle(state);
    else if (!schedules_steps())
      settle(state, /*wait=*/false);
  }
  state.micro = 0;
  state.window_nominal = state.window_weight = 0;
  ++state.global_step;
}

void StepRunner::step_window(const Window& window, const Tensor& found_inf) {
  // Before the first step it is unknown whether the module's override calls the base, which obeys found_inf.
  if (!obeys_ && window.skipped.value() != 0) return;
  const bool trusted = std::exchange(obeys_, false);
  module_.base_has_stepped_ = false;
  module_.optimizer_step(optimizers_.optimizer(), found_inf);
  obeys_ = module_.base_has_stepped_;
  if (trusted && !obeys_ && window.skipped.value() != 0)
    throw UsageError(
        fmt::format("[optimizer_step] {} called the base before, but not in step {}, whose gradients are not finite. "
                    "Call LevinModule::optimizer_step always or never.",
                    module_.type_name(), window.number));
}

bool StepRunner::schedules_steps() const {
  for (std::size_t k = 0; !manual_ && k < optimizers_.num_schedulers(); ++k)
    if (optimizers_.config(k).interval == Interval::step) return true;
  return false;
}

void StepRunner::settle(TrainState& state, bool wait) {
  if (manual_) manual_->settle(state, wait);
  while (!open_.empty() && (wait || open_.front().skipped.ready())) {
    const Window window = open_.front();
    open_.pop_front();
    if (window.skipped.value() != 0) continue;
    ++state.optimizer_steps[0];
    step_schedulers(Interval::step, window.number);
  }
}

void StepRunner::correct_gradients(double factor) {
  const no_grad guard;
  for (const auto& p : parameters_)
    if (const Tensor g = gradient_values(p); g.defined()) g.mul_(factor);
}

void StepRunner::step_schedulers(Interval interval, std::int64_t count) {
  for (std::size_t k = 0; !manual_ && k < optimizers_.num_schedulers(); ++k)
    if (!optimizers_.is_plateau(k) && optimizers_.config(k).interval == interval)
      step_scheduler(k, count, std::nullopt);
}

void StepRunner::step_scheduler(std::size_t k, std::int64_t count, std::optional<double> metric) {
  if (count % optimizers_.config(k).frequency == 0) module_.lr_scheduler_step(SchedulerHandle(optimizers_, k), metric);
}

}  // namespace levin
