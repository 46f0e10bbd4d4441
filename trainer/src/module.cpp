#include <levin/trainer/module.h>

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/optim/clip.h>

#include <fmt/format.h>

namespace levin {

StepOutput StepOutput::detached() const {
  StepOutput out = *this;
  if (!empty()) out.loss_ = loss_.detach();
  for (auto& [name, t] : out.extras_) t = t.detach();
  return out;
}

StepOutput LevinModule::training_step(const Batch&, int) {
  throw UsageError(fmt::format("[fit] {} has no training_step. Write one.", type_name()));
}

Tensor LevinModule::predict_step(const Batch& batch, int) { return (*this)(batch[0]); }

Optimizers LevinModule::configure_optimizers() {
  throw UsageError(fmt::format("[fit] {} has no configure_optimizers. Write one.", type_name()));
}

void LevinModule::log(std::string_view name, const Tensor& value, const LogOptions& options) {
  if (link_.metrics) link_.metrics->log(name, HostRead(value), options);
}

void LevinModule::log(std::string_view name, double value, const LogOptions& options) {
  if (link_.metrics) link_.metrics->log(name, value, options);
}

void LevinModule::optimizer_zero_grad(optim::Optimizer& optimizer) { optimizer.zero_grad(); }

void LevinModule::backward(const Tensor& loss) { loss.backward(); }

void LevinModule::configure_gradient_clipping(optim::Optimizer& optimizer, std::optional<double> value,
                                              const std::string& algorithm) {
  if (!value) return;
  if (algorithm == "value") optim::clip_grad_value_(optimizer.parameters(), *value);
  else optim::clip_grad_norm_(optimizer.parameters(), *value);
}

void LevinModule::optimizer_step(optim::Optimizer& optimizer) {
  base_has_stepped_ = true;
  if (found_inf_.defined())
    optimizer.step_unless(found_inf_);
  else
    optimizer.step();
}

void LevinModule::lr_scheduler_step(Optimizers& optimizers, std::optional<double> metric) {
  optimizers.step_scheduler(metric);
}

Tensor accuracy(const Tensor& logits, const Tensor& target) {
  const no_grad guard;
  return argmax(logits, 1).eq(target).to(kFloat32).mean();
}

}  // namespace levin
