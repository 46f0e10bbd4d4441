#pragma once

#include <levin/optim/fused_optimizer.h>

namespace levin::optim {

/// Options of ASGD, with PyTorch's defaults.
struct ASGDOptions {
  double lr = 1e-2;           ///< learning rate of the first step
  double lambd = 1e-4;        ///< decay of the parameter, times the rate
  double alpha = 0.75;        ///< the rate of step t is lr / (1 + lambd lr (t - 1))^alpha
  double t0 = 1e6;            ///< the step after which averaging starts
  double weight_decay = 0.0;  ///< added to the gradient (L2)
  bool maximize = false;      ///< steps along the gradient instead of against it
  bool capturable = false;    ///< see Settings
};

/// Averaged SGD (Polyak & Juditsky 1992), with PyTorch's update rule (kernels::AsgdStepArgs states it): the state "ax"
/// is the average of the parameter over the steps after t0, and the parameter itself before.
class ASGD : public FusedOptimizer<kernels::AsgdStepArgs> {
 public:
  using Options = ASGDOptions;
  /// Takes groups, or parameters that become one group; options, or the learning rate alone. Throws ValueError as
  /// add_param_group() does.
  explicit ASGD(std::vector<ParamGroup> groups, const Options& options = {});
  explicit ASGD(std::vector<Parameter> params, const Options& o = {});
  explicit ASGD(const std::vector<Tensor>& params, const Options& o = {});
  ASGD(std::vector<Parameter> params, std::floating_point auto lr) : ASGD(std::move(params), Options{.lr = lr}) {}
  ASGD(const std::vector<Tensor>& params, std::floating_point auto lr) : ASGD(params, Options{.lr = lr}) {}
};

}  // namespace levin::optim
