#include <levin/trainer/step_runner.h>

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>

#include <fmt/format.h>

namespace levin {

StepRunner::StepRunner(LevinModule& module, Optimizers& optimizers, Strategy& strategy, Precision& precision,
                       StepHooks& hooks, StepOptions options)
    : module_(module), optimizers_(optimizers), strategy_(strategy), precision_(precision), hooks_(hooks),
      options_(std::move(options)) {
  parameters_ = optimizers_.optimizer().parameters();
}

StepOutput StepRunner::run(const Batch& given, int index, bool last, TrainState& state) {
  const Batch batch = precision_.convert(strategy_.to_device(given));
  const std::int64_t samples = batch.size();
  const bool closes = last || state.micro + 1 == options_.accumulate_grad_batches;
  StepOutput out;
  {
    const auto scope = precision_.step_scope();
    out = module_.training_step(batch, index);
  }
  if (!out.empty()) backward(out, samples, closes, state);
  state.samples += samples;
  ++state.micro;
  if (closes) close_window(state);
  return out.detached();
}

void StepRunner::backward(const StepOutput& out, std::int64_t samples, bool closes, TrainState& state) {
  if (out.loss().numel() != 1)
    throw ShapeError(fmt::format("[training_step] the loss has shape {}. Return one number, e.g. its mean.",
                                 to_string(out.loss().sizes())));
  const double weight = out.weight().value_or(static_cast<double>(samples));
  if (!(weight > 0)) return;
  if (state.window_nominal == 0) {
    hooks_.on_before_zero_grad();
    module_.optimizer_zero_grad(optimizers_.optimizer());
    state.window_nominal = weight * static_cast<double>(options_.accumulate_grad_batches);
    state.window_weight = 0;
  }
  state.window_weight += weight;
  const double share = weight / state.window_nominal;
  const Tensor loss = precision_.scale(share == 1.0 ? out.loss() : out.loss() * share);
  strategy_.no_sync(!closes);
  hooks_.on_before_backward(loss);
  module_.backward(loss);
  hooks_.on_after_backward();
}

void StepRunner::close_window(TrainState& state) {
  const bool any_loss = state.window_nominal > 0;
  bool skipped = !any_loss;
  if (any_loss) {
    strategy_.finish_reduction();
    skipped = strategy_.reduce(precision_.unscale(parameters_) ? 1.0 : 0.0, ReduceOp::max) > 0;
    if (!skipped) {
      if (state.window_weight != state.window_nominal) correct_gradients(state.window_nominal / state.window_weight);
      hooks_.on_before_optimizer_step();
      module_.configure_gradient_clipping(optimizers_.optimizer(), options_.gradient_clip_val,
                                          options_.gradient_clip_algorithm);
      module_.optimizer_step(optimizers_.optimizer());
      ++state.optimizer_steps;
    }
    precision_.update(skipped);
  }
  state.micro = 0;
  state.window_nominal = state.window_weight = 0;
  ++state.global_step;
  if (!skipped && optimizers_.has_scheduler() && optimizers_.config().interval == Interval::step)
    step_scheduler(state.global_step, std::nullopt);
}

void StepRunner::correct_gradients(double factor) {
  const no_grad guard;
  for (const auto& p : parameters_)
    if (p.grad().defined()) p.grad().mul_(factor);
}

void StepRunner::step_epoch_scheduler(std::int64_t epoch, bool plateau, std::optional<double> metric) {
  if (!optimizers_.has_scheduler() || optimizers_.config().interval != Interval::epoch) return;
  if (plateau == optimizers_.is_plateau()) step_scheduler(epoch + 1, metric);
}

void StepRunner::step_scheduler(std::int64_t count, std::optional<double> metric) {
  if (count % optimizers_.config().frequency == 0) module_.lr_scheduler_step(optimizers_, metric);
}

}  // namespace levin
