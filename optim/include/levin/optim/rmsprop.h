#pragma once

#include <levin/optim/fused_optimizer.h>

namespace levin::optim {

/// Options of RMSprop, with PyTorch's defaults.
struct RMSpropOptions {
  double lr = 1e-2;           ///< learning rate
  double alpha = 0.99;        ///< decay rate of the averages
  double eps = 1e-8;          ///< added to the denominator, outside the root
  double weight_decay = 0.0;  ///< added to the gradient (L2)
  double momentum = 0.0;      ///< of the divided gradients; 0 keeps no buffer
  bool centered = false;      ///< divides by the standard deviation of the gradients (Graves 2013)
  bool maximize = false;      ///< steps along the gradient instead of against it
  bool capturable = false;    ///< see Settings
};

/// RMSprop: divides the gradient by a running average of its magnitude (Tieleman & Hinton 2012), with PyTorch's update
/// rule (kernels::RmspropStepArgs states it).
class RMSprop : public FusedOptimizer<kernels::RmspropStepArgs> {
 public:
  using Options = RMSpropOptions;
  /// Takes groups, or parameters that become one group; options, or the learning rate alone. Throws ValueError as
  /// add_param_group() does.
  explicit RMSprop(std::vector<ParamGroup> groups, const Options& options = {});
  explicit RMSprop(std::vector<Parameter> params, const Options& o = {});
  explicit RMSprop(const std::vector<Tensor>& params, const Options& o = {});
  RMSprop(std::vector<Parameter> params, std::floating_point auto lr) : RMSprop(std::move(params), Options{.lr = lr}) {}
  RMSprop(const std::vector<Tensor>& params, std::floating_point auto lr) : RMSprop(params, Options{.lr = lr}) {}
};

}  // namespace levin::optim
