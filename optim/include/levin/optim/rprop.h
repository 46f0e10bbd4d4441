#pragma once

#include <levin/optim/fused_optimizer.h>

namespace levin::optim {

/// Options of Rprop, with PyTorch's defaults. There is no weight decay.
struct RpropOptions {
  double lr = 1e-2;             ///< first step size of every element
  double eta_minus = 0.5;       ///< factor of a step size whose gradient changed its sign; in [0, 1)
  double eta_plus = 1.2;        ///< factor of a step size whose gradient kept its sign; 1 or more
  double step_size_min = 1e-6;  ///< lower bound of the step sizes
  double step_size_max = 50.0;  ///< upper bound of the step sizes
  bool maximize = false;        ///< steps along the gradient instead of against it
  bool capturable = false;      ///< see Settings
};

/// Resilient backpropagation: steps by sizes of its own, which grow while a gradient keeps its sign and shrink where it
/// changes (Riedmiller & Braun 1993), with PyTorch's update rule (kernels::RpropStepArgs
/// states it). It is meant for gradients of the whole data set.
class Rprop : public FusedOptimizer<kernels::RpropStepArgs> {
 public:
  using Options = RpropOptions;
  /// Takes groups, or parameters that become one group; options, or the learning rate alone. Throws ValueError as
  /// add_param_group() does.
  explicit Rprop(std::vector<ParamGroup> groups, const Options& options = {});
  explicit Rprop(std::vector<Parameter> params, const Options& o = {});
  explicit Rprop(const std::vector<Tensor>& params, const Options& o = {});
  Rprop(std::vector<Parameter> params, std::floating_point auto lr) : Rprop(std::move(params), Options{.lr = lr}) {}
  Rprop(const std::vector<Tensor>& params, std::floating_point auto lr) : Rprop(params, Options{.lr = lr}) {}
};

}  // namespace levin::optim
