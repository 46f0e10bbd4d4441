#pragma once

#include <levin/optim/fused_optimizer.h>

namespace levin::optim {

struct RpropOptions {
  double lr = 1e-2;
  double eta_minus = 0.5;
  double eta_plus = 1.2;
  double step_size_min = 1e-6;
  double step_size_max = 50.0;
  bool maximize = false;
  bool capturable = false;  ///< see Settings
};

/// Resilient backpropagation: steps by sizes of its own, which grow while a gradient keeps its sign and shrink where it
/// changes (Riedmiller & Braun 1993), with PyTorch's update rule. lr is the first size. It is meant for whole-batch
/// gradients.
class Rprop : public FusedOptimizer<kernels::RpropStepArgs> {
 public:
  using Options = RpropOptions;
  explicit Rprop(std::vector<ParamGroup> groups, const Options& options = {});
  explicit Rprop(std::vector<Parameter> params, const Options& o = {}) : Rprop(one_group(std::move(params)), o) {}
  explicit Rprop(const std::vector<Tensor>& params, const Options& o = {}) : Rprop(named(params), o) {}
  template <std::floating_point Rate>
  Rprop(std::vector<Parameter> params, Rate lr) : Rprop(std::move(params), Options{.lr = lr}) {}
  template <std::floating_point Rate>
  Rprop(const std::vector<Tensor>& params, Rate lr) : Rprop(params, Options{.lr = lr}) {}
};

}  // namespace levin::optim
