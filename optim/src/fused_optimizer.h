#pragma once
// The definition of FusedOptimizer, for the source of each optimizer.

#include <levin/autograd/row_gradient.h>
#include <levin/optim/fused_optimizer.h>

#include <utility>

namespace levin::optim {

/// The tensors of one fused step. A parameter that is not contiguous is updated in a copy, which is copied back.
class FusedStep {
 public:
  explicit FusedStep(const std::vector<const Parameter*>& params);

  template <class Args>
  void run(const kernels::Kernel<void(const Args&, Stream&)>& kernel, Args args) {
    args.tensors = tensors;
    Stream stream = current_stream(params_[0]->device());
    kernel(args, stream);
    finish();
  }

  std::vector<kernels::OptimTensor> tensors;

 private:
  void finish();

  const std::vector<const Parameter*>& params_;
  std::vector<Tensor> values_, grads_;
};

/// Copies of the rows of a parameter and its slots, of which one fused step is made.
class RowStep {
 public:
  /// `tensor` has the addresses of the slots, whose tensors are `slots`; here it gets those of their rows.
  RowStep(const Parameter& parameter, const std::vector<Tensor>& slots, const RowGradient& gradient,
          kernels::OptimTensor& tensor);
  /// Writes the rows back.
  void finish();

 private:
  struct Copy {
    Tensor whole, rows;
  };
  Tensor indices_, gradient_;
  std::vector<Copy> copies_;
};

/// Throws ValueError, tagged `optimizer`, for a weight decay, which would change all rows of a parameter.
void check_row_decay(const char* optimizer, const ParamGroup& group, const Parameter& parameter);

template <class Args>
FusedOptimizer<Args>::FusedOptimizer(const char* name, const Kernel& kernel, std::vector<std::string> slots,
                                     bool capturable, std::vector<Hyperparameter> hyperparameters)
    : Optimizer(name, std::move(slots),
                [&] {
                  Settings defaults{{"capturable", capturable}};
                  for (const Hyperparameter& h : hyperparameters) defaults[h.name] = h.value;
                  return defaults;
                }()),
      kernel_(kernel),
      hyperparameters_(std::make_unique<std::vector<Hyperparameter>>(std::move(hyperparameters))) {}

template <class Args>
void FusedOptimizer<Args>::Hyperparameter::write(double setting, Args& args) const {
  if (number_) args.*number_ = setting;
  if (flag_) args.*flag_ = setting != 0;
}

template <class Args>
void FusedOptimizer<Args>::check(const Settings& settings) const {
  for (const Hyperparameter& h : *hyperparameters_) require_range(settings, h.name, h.range.low, h.range.high);
}

template <class Args>
void FusedOptimizer<Args>::step_group(const ParamGroup& group, const std::vector<const Parameter*>& params) {
  Args args = fixed_args();
  for (const Hyperparameter& h : *hyperparameters_) h.write(group[h.name], args);
  FusedStep step(params);
  for (std::size_t i = 0; i < params.size(); ++i)
    prepare(group, *params[i], args.slots(), initial_value(group), step.tensors[i]);
  args.guard = guard();
  args.lr_at = recorded_lr(group, *params[0]);
  step.run(kernel_, args);
}

template <class Args>
void FusedOptimizer<Args>::step_rows(const ParamGroup& group, const Parameter& parameter, const RowGradient& gradient) {
  Args args = fixed_args();
  for (const Hyperparameter& h : *hyperparameters_) h.write(group[h.name], args);
  kernels::OptimTensor tensor;
  prepare(group, parameter, args.slots(), initial_value(group), tensor);
  if (gradient.indices.numel() == 0) return;
  RowStep rows(parameter, state_of(parameter).slots, gradient, tensor);
  args.tensors = {&tensor, 1};
  args.guard = guard();
  Stream stream = current_stream(parameter.device());
  kernel_(args, stream);
  rows.finish();
}

}  // namespace levin::optim
