#pragma once

#include <levin/optim/adam.h>
#include <levin/optim/composed_optimizer.h>

namespace levin::optim {

/// Options of LAMB.
struct LAMBOptions {
  double lr = 1e-3;           ///< learning rate
  Betas betas{};              ///< decay rates of both moments
  double eps = 1e-6;          ///< added to the denominator, the root of the second moment
  double weight_decay = 0.0;  ///< times the parameter, added to the direction
  bool maximize = false;      ///< steps along the gradient instead of against it
};

/// Adam's direction, scaled for each parameter to the parameter's norm, for large batches (You et al. 2020):
///
///   d = m / (1 - beta1^step) / (sqrt(v / (1 - beta2^step)) + eps) + weight_decay * param
///   param -= lr * |param| / |d| * d
///
/// with Adam's moments m and v and L2 norms over the whole tensor. If one of the norms is 0, their ratio is taken as 1.
class LAMB : public ComposedOptimizer {
 public:
  using Options = LAMBOptions;
  /// Takes groups, or parameters that become one group; options, or the learning rate alone. Throws ValueError as
  /// add_param_group() does.
  explicit LAMB(std::vector<ParamGroup> groups, const Options& options = {});
  explicit LAMB(std::vector<Parameter> params, const Options& o = {});
  explicit LAMB(const std::vector<Tensor>& params, const Options& o = {});
  LAMB(std::vector<Parameter> params, std::floating_point auto lr) : LAMB(std::move(params), Options{.lr = lr}) {}
  LAMB(const std::vector<Tensor>& params, std::floating_point auto lr) : LAMB(params, Options{.lr = lr}) {}

 protected:
  void update(const ParamGroup& group, int64_t number, Values& values) const override;
};

}  // namespace levin::optim
