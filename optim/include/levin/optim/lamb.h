#pragma once

#include <levin/optim/adam.h>
#include <levin/optim/composed_optimizer.h>

namespace levin::optim {

struct LAMBOptions {
  double lr = 1e-3;
  Betas betas{};
  double eps = 1e-6;
  double weight_decay = 0.0;  ///< added to the direction
  bool maximize = false;
};

/// Adam's direction, scaled for each parameter to the parameter's norm, for large batches (You et al. 2020). A
/// parameter or a direction of norm 0 is not scaled.
class LAMB : public ComposedOptimizer {
 public:
  using Options = LAMBOptions;
  explicit LAMB(std::vector<ParamGroup> groups, const Options& options = {});
  explicit LAMB(std::vector<Parameter> params, const Options& o = {}) : LAMB(one_group(std::move(params)), o) {}
  explicit LAMB(const std::vector<Tensor>& params, const Options& o = {}) : LAMB(named(params), o) {}
  template <std::floating_point Rate>
  LAMB(std::vector<Parameter> params, Rate lr) : LAMB(std::move(params), Options{.lr = lr}) {}
  template <std::floating_point Rate>
  LAMB(const std::vector<Tensor>& params, Rate lr) : LAMB(params, Options{.lr = lr}) {}

 protected:
  void update(const ParamGroup& group, int64_t number, Values& values) const override;
};

}  // namespace levin::optim
