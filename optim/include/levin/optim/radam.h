#pragma once

#include <levin/optim/adam.h>

namespace levin::optim {

struct RAdamOptions {
  double lr = 1e-3;
  Betas betas{};
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool decoupled_weight_decay = false;  ///< weight_decay acts on the parameter instead of the gradient
  bool maximize = false;
  bool capturable = false;  ///< see Settings
};

/// Rectified Adam, whose first steps do not divide by the second moment until its variance is small (Liu et al. 2020),
/// with PyTorch's update rule.
class RAdam : public FusedOptimizer<kernels::RadamStepArgs> {
 public:
  using Options = RAdamOptions;
  explicit RAdam(std::vector<ParamGroup> groups, const Options& options = {});
  explicit RAdam(std::vector<Parameter> params, const Options& o = {}) : RAdam(one_group(std::move(params)), o) {}
  explicit RAdam(const std::vector<Tensor>& params, const Options& o = {}) : RAdam(named(params), o) {}
  template <std::floating_point Rate>
  RAdam(std::vector<Parameter> params, Rate lr) : RAdam(std::move(params), Options{.lr = lr}) {}
  template <std::floating_point Rate>
  RAdam(const std::vector<Tensor>& params, Rate lr) : RAdam(params, Options{.lr = lr}) {}
};

}  // namespace levin::optim
