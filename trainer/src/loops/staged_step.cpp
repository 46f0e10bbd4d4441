#include "src/loops/staged_step.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>

#include <fmt/format.h>

#include <numeric>

#include "src/profilers/actions.h"

namespace levin {

Tensor StagedStep::forward(std::size_t number, const Batch& part) {
  const ProfileScope profile(action_of(module_, "training_step"), Phase::forward);
  const auto scope = precision_.step_scope();
  StepOutput out;
  run_.step(number, module_, part, [&](std::size_t, LevinModule& m, const Batch& b) {
    out = m.training_step_end(m.training_step(b, place_.index));
    return std::vector<Tensor>();
  });
  if (!out.empty()) check_loss(out.loss());
  const auto samples = static_cast<double>(part.size());
  const double weight = out.empty() ? 0.0 : out.weight().value_or(samples);
  outputs_.push_back(out.detached());
  weights_.push_back(weight);
  if (!(weight > 0)) return {};
  if (place_.nominal == 0)
    place_.nominal = weight / samples * static_cast<double>(place_.samples) * static_cast<double>(place_.window);
  const double share = weight / place_.nominal;
  return precision_.scale(share == 1.0 ? out.loss() : out.loss() * share);
}

void StagedStep::backward(const Tensor& share) {
  hooks_.on_before_backward(share);
  const ProfileScope profile([&] { return fmt::format("[Strategy]{}.backward", strategy_.name()); }, Phase::backward);
  module_.backward(share);
}

void StagedStep::begin(const Batch& part) {
  const ProfileScope profile(action_of(module_, "training_step"), Phase::forward);
  const auto scope = precision_.step_scope();
  run_.step(0, module_, part, [&](std::size_t, LevinModule& m, const Batch& b) {
    m.training_step(b, place_.index);
    return std::vector<Tensor>();
  });
}

std::vector<Tensor> StagedStep::compute(const std::function<std::vector<Tensor>()>& layers) {
  const auto scope = precision_.step_scope();
  return layers();
}

/// Returns the weighted loss of the parts, and their extras concatenated along dimension 0.
StepOutput StagedStep::whole() const {
  const no_grad guard;
  const double total = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  Tensor loss;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (!(weights_[i] > 0)) continue;
    const Tensor share = outputs_[i].loss().reshape({}) * (weights_[i] / total);
    loss = loss.defined() ? loss + share : share;
  }
  std::map<std::string, Tensor> extras;
  for (const auto& [name, first] : outputs_[0].extras()) {
    std::vector<Tensor> rows;
    for (const StepOutput& out : outputs_) {
      const auto own = out.extras().find(name);
      if (own == out.extras().end() || out.extras().size() != outputs_[0].extras().size())
        throw UsageError(
            "[training_step] the names of the extras differ between parts of a batch. Return the same names.");
      rows.push_back(as_rows(own->second));
    }
    extras[name] = cat(rows, 0);
  }
  return {loss, extras};
}

StagedStep::Result StagedStep::share() {
  StepOutput own;
  StateMap known;
  if (strategy_.is_global_zero()) {
    own = whole();
    known.set("weight", std::accumulate(weights_.begin(), weights_.end(), 0.0));
    known.set("nominal", place_.nominal);
    known.set("dtype", static_cast<std::int64_t>(own.empty() ? kFloat32 : own.loss().dtype()));
    known.set("loss", own.empty() ? 0.0 : own.loss().item<double>());
    if (run_.metrics()) known.put("logged", run_.metrics()->joined(run_.logged()));
  }
  known = strategy_.broadcast(known, 0);
  if (run_.metrics()) run_.metrics()->log(known.part("logged"));
  const double weight = known.get<double>("weight");
  if (!(weight > 0)) return {};
  const auto dtype = static_cast<DType>(known.get<std::int64_t>("dtype"));
  const Tensor loss = full({}, known.get<double>("loss"), {.dtype = dtype, .device = strategy_.device()});
  return {.output = StepOutput(loss, own.extras()),
          .weight = weight,
          .nominal = known.get<double>("nominal")};
}

}  // namespace levin
