#pragma once

#include <levin/optim/fused_optimizer.h>

namespace levin::optim {

/// Options of Adagrad, with PyTorch's defaults.
struct AdagradOptions {
  double lr = 1e-2;                        ///< learning rate of the first step
  double lr_decay = 0.0;                   ///< the rate at step t is lr / (1 + (t - 1) * lr_decay)
  double weight_decay = 0.0;               ///< added to the gradient (L2)
  double initial_accumulator_value = 0.0;  ///< first value of the sums of squares
  double eps = 1e-10;                      ///< added to the denominator, the root of the sum
  bool maximize = false;                   ///< steps along the gradient instead of against it
  bool capturable = false;                 ///< see Settings
};

/// Adagrad: divides the gradient by the root of the sum of its squares so far (Duchi, Hazan & Singer 2011), with
/// PyTorch's update rule (kernels::AdagradStepArgs states it). Of row-wise gradients (autograd/row_gradient.h) only the
/// rows are read and written; with weight_decay, which would change all rows, a step throws ValueError.
class Adagrad : public FusedOptimizer<kernels::AdagradStepArgs> {
 public:
  using Options = AdagradOptions;
  /// Takes groups, or parameters that become one group; options, or the learning rate alone. Throws ValueError as
  /// add_param_group() does.
  explicit Adagrad(std::vector<ParamGroup> groups, const Options& options = {});
  explicit Adagrad(std::vector<Parameter> params, const Options& o = {});
  explicit Adagrad(const std::vector<Tensor>& params, const Options& o = {});
  Adagrad(std::vector<Parameter> params, std::floating_point auto lr) : Adagrad(std::move(params), Options{.lr = lr}) {}
  Adagrad(const std::vector<Tensor>& params, std::floating_point auto lr) : Adagrad(params, Options{.lr = lr}) {}

 protected:
  void check_rows(const ParamGroup& group, const Parameter& parameter) const override;
  double initial_value(const ParamGroup& group) const override { return group["initial_accumulator_value"]; }
};

}  // namespace levin::optim
