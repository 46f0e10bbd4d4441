#include <levin/trainer/callbacks/weight_averaging.h>

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/trainer/precision.h>

#include <fmt/format.h>

#include <utility>

namespace levin {
namespace {

Tensor plain_mean(const Tensor& average, const Tensor& now, std::int64_t count) {
  return average + (now - average) / static_cast<double>(count + 1);
}

DType averaging_type(DType own) { return own == kFloat64 ? kFloat64 : kFloat32; }

StateDict copies_of(const StateDict& weights) {
  StateDict out;
  for (const auto& [name, t] : weights) out.set(name, t.detach().clone());
  return out;
}

/// Returns the averages in the types of the weights that they replace.
StateDict in_place_of(const StateDict& weights, const StateDict& averages) {
  StateDict out;
  for (const auto& [name, t] : weights) out.set(name, averages.at(name).to(t.device(), t.dtype()));
  return out;
}

}  // namespace

void AveragedWeights::update(RunContext& run, const Average& given) {
  const no_grad guard;
  const Average average = given ? given : Average(plain_mean);
  StateDict buffers;
  for (const auto& [name, t] : run.module.named_buffers()) buffers.set(name, t);
  StateDict updated;
  for (const auto& [name, weight] : run.precision->weights(run.module)) {
    const DType dtype = weight.is_floating() ? averaging_type(weight.dtype()) : weight.dtype();
    Tensor now = weight.detach().to(device_.value_or(weight.device()), dtype);
    const bool copied = !weight.is_floating() || (!use_buffers_ && buffers.contains(name));
    if (count_ > 0 && !copied)
      now = average(values_.at(name).to(now.device()), now, count_);
    else
      now = now.clone();
    updated.set(name, now);
  }
  values_ = std::move(updated);
  ++count_;
}

void AveragedWeights::load(const StateDict& values, std::int64_t count) {
  values_ = values;
  count_ = count;
}

void AveragedWeights::copy_to(RunContext& run) const {
  if (count_ == 0) return;
  const no_grad guard;
  run.precision->load_weights(run.module, in_place_of(run.precision->weights(run.module), values_));
}

WeightAveraging::WeightAveraging(WeightAveragingOptions options)
    : avg_fn_(std::move(options.avg_fn)), average_(options.device, options.use_buffers) {}

bool WeightAveraging::should_update(std::optional<std::int64_t> step, std::optional<std::int64_t>) const {
  return step.has_value();
}

StateMap WeightAveraging::state() const {
  StateMap s;
  s.set("count", average_.count());
  s.set("last_step", last_step_);
  s.set("last_epoch", last_epoch_);
  return s;
}

void WeightAveraging::load_state(const StateMap& s) {
  average_.load(average_.values(), s.get<std::int64_t>("count"));
  last_step_ = s.get<std::int64_t>("last_step");
  last_epoch_ = s.get<std::int64_t>("last_epoch");
}

void WeightAveraging::load_tensors(const StateDict& tensors) { average_.load(tensors, average_.count()); }

bool WeightAveraging::on_save_weights(RunContext& run, StateDict& weights) {
  swap_back(run);  // a signal may have ended the run during a validation
  if (average_.count() == 0) return false;
  weights = in_place_of(weights, average_.values());
  return true;
}

void WeightAveraging::setup(RunContext& run) {
  if (run.stage != Stage::fit) return;
  average_.clear();
  trained_ = {};
  last_step_ = 0;
  last_epoch_ = -1;
}

void WeightAveraging::on_train_batch_end(RunContext& run, const StepOutput&, const Batch&, int) {
  const std::int64_t steps = run.state.global_step;
  if (steps == last_step_) return;  // the accumulation window is still open
  last_step_ = steps;
  if (should_update(steps - 1, {})) average_.update(run, avg_fn_);
}

void WeightAveraging::on_train_epoch_end(RunContext& run) {
  if (run.state.epoch == last_epoch_) return;
  last_epoch_ = run.state.epoch;
  if (should_update({}, run.state.epoch)) average_.update(run, avg_fn_);
}

void WeightAveraging::on_validation_epoch_start(RunContext& run) { swap_in(run); }

// A resumed validation has no start hook, and saving during one restores the trained weights.
void WeightAveraging::on_validation_batch_start(RunContext& run, const Batch&, int) { swap_in(run); }

void WeightAveraging::swap_in(RunContext& run) {
  if (run.stage != Stage::fit || average_.count() == 0 || !trained_.empty()) return;
  trained_ = copies_of(run.precision->weights(run.module));
  average_.copy_to(run);
}

void WeightAveraging::on_validation_epoch_end(RunContext& run) { swap_back(run); }

void WeightAveraging::swap_back(RunContext& run) {
  if (trained_.empty()) return;
  const no_grad guard;
  run.precision->load_weights(run.module, std::exchange(trained_, {}));
}

void WeightAveraging::on_train_end(RunContext& run) { average_.copy_to(run); }

EMAWeightAveraging::EMAWeightAveraging(EMAWeightAveragingOptions options)
    : WeightAveraging({.device = options.device,
                       .use_buffers = options.use_buffers,
                       .avg_fn = [decay = options.decay](const Tensor& average, const Tensor& now,
                                                         std::int64_t) { return lerp(average, now, 1.0 - decay); }}),
      options_(options) {
  if (!(options.decay >= 0 && options.decay <= 1))
    throw UsageError(fmt::format("[EMAWeightAveraging] decay is {}. Give a number from 0 to 1.", options.decay));
  if (options.update_every_n_steps < 1)
    throw UsageError(
        fmt::format("[EMAWeightAveraging] update_every_n_steps is {}. Give 1 or more.", options.update_every_n_steps));
}

bool EMAWeightAveraging::should_update(std::optional<std::int64_t> step, std::optional<std::int64_t> epoch) const {
  if (step) return *step >= options_.update_starting_at_step.value_or(0) && *step % options_.update_every_n_steps == 0;
  return epoch && options_.update_starting_at_epoch && *epoch >= *options_.update_starting_at_epoch;
}

}  // namespace levin
