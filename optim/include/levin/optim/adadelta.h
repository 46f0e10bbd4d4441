#pragma once

#include <levin/optim/fused_optimizer.h>

namespace levin::optim {

/// Options of Adadelta, with PyTorch's defaults.
struct AdadeltaOptions {
  double lr = 1.0;            ///< factor of the update
  double rho = 0.9;           ///< decay of the averages of squares, in [0, 1)
  double eps = 1e-6;          ///< added to both averages under their roots
  double weight_decay = 0.0;  ///< added to the gradient (L2)
  bool maximize = false;      ///< steps along the gradient instead of against it
  bool capturable = false;    ///< see Settings
};

/// Adadelta: multiplies the gradient by the ratio of the running magnitudes of updates and gradients (Zeiler 2012),
/// with PyTorch's update rule (kernels::AdadeltaStepArgs states it).
class Adadelta : public FusedOptimizer<kernels::AdadeltaStepArgs> {
 public:
  using Options = AdadeltaOptions;
  /// Takes groups, or parameters that become one group; options, or the learning rate alone. Throws ValueError as
  /// add_param_group() does.
  explicit Adadelta(std::vector<ParamGroup> groups, const Options& options = {});
  explicit Adadelta(std::vector<Parameter> params, const Options& o = {});
  explicit Adadelta(const std::vector<Tensor>& params, const Options& o = {});
  Adadelta(std::vector<Parameter> params, std::floating_point auto lr)
      : Adadelta(std::move(params), Options{.lr = lr}) {}
  Adadelta(const std::vector<Tensor>& params, std::floating_point auto lr) : Adadelta(params, Options{.lr = lr}) {}
};

}  // namespace levin::optim
