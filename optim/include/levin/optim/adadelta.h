#pragma once

#include <levin/optim/fused_optimizer.h>

namespace levin::optim {

struct AdadeltaOptions {
  double lr = 1.0;
  double rho = 0.9;  ///< decay of the averages
  double eps = 1e-6;
  double weight_decay = 0.0;  ///< added to the gradient (L2)
  bool maximize = false;
  bool capturable = false;  ///< see Settings
};

/// Adadelta: multiplies the gradient by the ratio of the running magnitudes of updates and gradients (Zeiler 2012),
/// with PyTorch's update rule.
class Adadelta : public FusedOptimizer<kernels::AdadeltaStepArgs> {
 public:
  using Options = AdadeltaOptions;
  explicit Adadelta(std::vector<ParamGroup> groups, const Options& options = {});
  explicit Adadelta(std::vector<Parameter> params, const Options& o = {}) : Adadelta(one_group(std::move(params)), o) {}
  explicit Adadelta(const std::vector<Tensor>& params, const Options& o = {}) : Adadelta(named(params), o) {}
  template <std::floating_point Rate>
  Adadelta(std::vector<Parameter> params, Rate lr) : Adadelta(std::move(params), Options{.lr = lr}) {}
  template <std::floating_point Rate>
  Adadelta(const std::vector<Tensor>& params, Rate lr) : Adadelta(params, Options{.lr = lr}) {}
};

}  // namespace levin::optim
