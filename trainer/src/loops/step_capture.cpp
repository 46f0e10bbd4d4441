#include "src/loops/step_capture.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/row_gradient.h>
#include <levin/trainer/precision.h>
#include <levin/trainer/strategy.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace levin {

Gradients::Gradients(const std::vector<Parameter>& parameters) {
  for (const Parameter& p : parameters) of_.push_back({p, p.grad()});
}

bool Gradients::are_set() const {
  return std::ranges::all_of(of_,
                             [](const One& one) { return !one.kept || one.parameter.grad().is_same(one.gradient); });
}

void Gradients::set() const {
  for (const One& one : of_)
    if (!one.parameter.grad().is_same(one.gradient)) one.parameter.set_grad(one.gradient);
}

void Gradients::keep_equal(const Gradients& other) {
  for (std::size_t i = 0; i < of_.size(); ++i)
    of_[i].kept = of_[i].gradient.defined() && of_[i].gradient.is_same(other.of_[i].gradient);
}

CapturedPass::CapturedPass(const Batch& like, double window_nominal) : batch(like), nominal(window_nominal) {}

bool CapturedPass::fits(const Batch& other, double window_nominal) const {
  const auto alike = [](const Tensor& a, const Tensor& b) {
    if (!a.defined() || !b.defined()) return a.defined() == b.defined();
    return a.sizes() == b.sizes() && a.dtype() == b.dtype() && a.device() == b.device();
  };
  return nominal == window_nominal && batch.samples == other.samples &&
         std::ranges::equal(batch.tensors, other.tensors, alike);
}

void CapturedPass::load(const Batch& other) {
  const no_grad guard;
  for (std::size_t i = 0; i < batch.tensors.size(); ++i)
    if (batch.tensors[i].defined()) batch.tensors[i].copy_(other.tensors[i]);
}

void StepCapture::check(const LevinModule& module, Strategy& strategy, const PrecisionPlugin& precision) {
  if (!module.automatic_optimization)
    throw UsageError(
        fmt::format("[fit] {} uses manual optimization, whose steps --capture does not know. Leave it out, or call "
                    "levin::capture() in training_step.",
                    module.type_name()));
  if (strategy.world_size() > 1 || strategy.replicas() || strategy.stages() || strategy.sharded_optimizer())
    throw UsageError(fmt::format("[fit] --capture is for one process and one device, but --strategy {} exchanges "
                                 "values between several. Leave one of them out.",
                                 strategy.name()));
  if (precision.has_own_weights())
    throw UsageError(
        fmt::format("[fit] --capture cannot replay --precision {}, which steps on its own copy of the weights. Use "
                    "16-mixed or bf16-mixed.",
                    precision.name()));
}

void StepCapture::refuse_rows(const std::vector<Parameter>& parameters) {
  for (const Parameter& p : parameters)
    if (row_grad(p))
      throw UsageError(
          fmt::format("[fit] --capture cannot replay the row-wise gradient of \"{}\" (sparse = true). Use sparse = "
                      "false, or leave --capture out.",
                      p.name));
}

void StepCapture::begin_epoch(Optimizers& optimizers) {
  warm_ = false;
  steps_.clear();
  passes_.clear();
  seen_.clear();
  for (std::size_t i = 0; i < optimizers.size(); ++i)
    for (auto& group : optimizers.optimizer(i).param_groups())
      if (group.has("capturable")) group["capturable"] = 1;
}

CapturedPass* StepCapture::find(const Batch& batch, double nominal) {
  for (CapturedPass& pass : passes_)
    if (pass.fits(batch, nominal) && pass.added_to.are_set()) return &pass;
  return nullptr;
}

CapturedPass* StepCapture::begin(const Batch& batch, double nominal) {
  const auto same = [&](const CapturedPass& pass) { return pass.fits(batch, nominal); };
  if (std::ranges::none_of(seen_, same)) {
    CapturedPass& shapes = seen_.emplace_back(Batch(batch), nominal);
    for (Tensor& t : shapes.batch.tensors)  // no copy of the values
      if (t.defined()) t = empty(t.sizes(), like(t));
    if (seen_.size() > kMost) seen_.pop_front();
    return nullptr;
  }
  std::erase_if(passes_, same);  // it adds to gradients that are no more
  if (passes_.size() == kMost) return nullptr;
  CapturedPass& pass = passes_.emplace_back(batch, nominal);
  const no_grad guard;
  for (Tensor& t : pass.batch.tensors)
    if (t.defined()) t = t.clone();
  return &pass;
}

void StepCapture::run_step(const std::vector<Parameter>& parameters, const std::function<void()>& work) {
  if (!std::exchange(warm_, true)) return work();
  const auto known = std::ranges::find_if(steps_, [](const Step& s) { return s.gradients.are_set(); });
  if (known != steps_.end()) return known->captured.replay();
  const auto set = [](const CapturedPass& pass) { return pass.backward && pass.made.are_set(); };
  if (std::ranges::none_of(passes_, set)) return work();
  steps_.push_back({Gradients(parameters), capture(work)});
  steps_.back().captured.replay();
}

}  // namespace levin
