#pragma once

#include <levin/optim/adam.h>

namespace levin::optim {

/// Options of RAdam, with PyTorch's defaults.
struct RAdamOptions {
  double lr = 1e-3;                     ///< learning rate
  Betas betas{};                        ///< decay rates of both moments
  double eps = 1e-8;                    ///< added to the denominator, the root of the second moment
  double weight_decay = 0.0;            ///< added to the gradient (L2), or see decoupled_weight_decay
  bool decoupled_weight_decay = false;  ///< weight_decay multiplies the parameter by 1 - lr * weight_decay
  bool maximize = false;                ///< steps along the gradient instead of against it
  bool capturable = false;              ///< see Settings
};

/// Rectified Adam, whose first steps do not divide by the second moment until its variance is small (Liu et al. 2020),
/// with PyTorch's update rule (kernels::RadamStepArgs states it).
class RAdam : public FusedOptimizer<kernels::RadamStepArgs> {
 public:
  using Options = RAdamOptions;
  /// Takes groups, or parameters that become one group; options, or the learning rate alone. Throws ValueError as
  /// add_param_group() does.
  explicit RAdam(std::vector<ParamGroup> groups, const Options& options = {});
  explicit RAdam(std::vector<Parameter> params, const Options& o = {});
  explicit RAdam(const std::vector<Tensor>& params, const Options& o = {});
  RAdam(std::vector<Parameter> params, std::floating_point auto lr) : RAdam(std::move(params), Options{.lr = lr}) {}
  RAdam(const std::vector<Tensor>& params, std::floating_point auto lr) : RAdam(params, Options{.lr = lr}) {}
};

}  // namespace levin::optim
