#pragma once

#include <levin/optim/adam.h>

namespace levin::optim {

/// Options of Adamax, with PyTorch's defaults.
struct AdamaxOptions {
  double lr = 2e-3;           ///< learning rate
  Betas betas{};              ///< decay rates of the average gradient and of the infinity norm
  double eps = 1e-8;          ///< added to the magnitude of the gradient
  double weight_decay = 0.0;  ///< added to the gradient (L2)
  bool maximize = false;      ///< steps along the gradient instead of against it
  bool capturable = false;    ///< see Settings
};

/// Adamax: Adam with the infinity norm in place of the second moment (Kingma & Ba 2015), with PyTorch's update rule
/// (kernels::AdamaxStepArgs states it).
class Adamax : public FusedOptimizer<kernels::AdamaxStepArgs> {
 public:
  using Options = AdamaxOptions;
  /// Takes groups, or parameters that become one group; options, or the learning rate alone. Throws ValueError as
  /// add_param_group() does.
  explicit Adamax(std::vector<ParamGroup> groups, const Options& options = {});
  explicit Adamax(std::vector<Parameter> params, const Options& o = {});
  explicit Adamax(const std::vector<Tensor>& params, const Options& o = {});
  Adamax(std::vector<Parameter> params, std::floating_point auto lr) : Adamax(std::move(params), Options{.lr = lr}) {}
  Adamax(const std::vector<Tensor>& params, std::floating_point auto lr) : Adamax(params, Options{.lr = lr}) {}
};

}  // namespace levin::optim
