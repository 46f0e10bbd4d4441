#pragma once

#include <levin/optim/adam.h>

namespace levin::optim {

/// Options of Lion.
struct LionOptions {
  double lr = 1e-4;                           ///< a third to a tenth of AdamW's, since every element moves by lr
  Betas betas{.first = 0.9, .second = 0.99};  ///< share of the momentum in the step, and decay rate of the momentum
  double weight_decay = 0.0;                  ///< decoupled: multiplies the parameter by 1 - lr * weight_decay
  bool maximize = false;                      ///< steps along the gradient instead of against it
  bool capturable = false;                    ///< see Settings
};

/// Lion: steps by lr times the sign of an interpolation of momentum and gradient (Chen et al. 2023), with decoupled
/// weight decay; kernels::LionStepArgs states the formula.
class Lion : public FusedOptimizer<kernels::LionStepArgs> {
 public:
  using Options = LionOptions;
  /// Takes groups, or parameters that become one group; options, or the learning rate alone. Throws ValueError as
  /// add_param_group() does.
  explicit Lion(std::vector<ParamGroup> groups, const Options& options = {});
  explicit Lion(std::vector<Parameter> params, const Options& o = {});
  explicit Lion(const std::vector<Tensor>& params, const Options& o = {});
  Lion(std::vector<Parameter> params, std::floating_point auto lr) : Lion(std::move(params), Options{.lr = lr}) {}
  Lion(const std::vector<Tensor>& params, std::floating_point auto lr) : Lion(params, Options{.lr = lr}) {}
};

}  // namespace levin::optim
