#pragma once

#include <levin/optim/adam.h>

namespace levin::optim {

struct LionOptions {
  double lr = 1e-4;
  Betas betas{.first = 0.9, .second = 0.99};
  double weight_decay = 0.0;  ///< decoupled: applied to the parameter
  bool maximize = false;
  bool capturable = false;  ///< see Settings
};

/// Lion: steps by the sign of the interpolated gradient (Chen et al. 2023), with decoupled weight decay.
class Lion : public FusedOptimizer<kernels::LionStepArgs> {
 public:
  using Options = LionOptions;
  explicit Lion(std::vector<ParamGroup> groups, const Options& options = {});
  explicit Lion(std::vector<Parameter> params, const Options& o = {}) : Lion(one_group(std::move(params)), o) {}
  explicit Lion(const std::vector<Tensor>& params, const Options& o = {}) : Lion(named(params), o) {}
  template <std::floating_point Rate>
  Lion(std::vector<Parameter> params, Rate lr) : Lion(std::move(params), Options{.lr = lr}) {}
  template <std::floating_point Rate>
  Lion(const std::vector<Tensor>& params, Rate lr) : Lion(params, Options{.lr = lr}) {}
};

}  // namespace levin::optim
