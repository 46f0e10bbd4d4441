#pragma once

#include <levin/optim/composed_optimizer.h>

namespace levin::optim {

/// Options of SparseAdam, with PyTorch's defaults.
struct SparseAdamOptions {
  double lr = 1e-3;                             ///< learning rate
  std::pair<double, double> betas{0.9, 0.999};  ///< decay rates of both moments, each in [0, 1)
  double eps = 1e-8;      ///< added to the denominator, the root of the second moment before its bias correction
  bool maximize = false;  ///< steps along the gradient instead of against it
};

/// Adam (Kingma & Ba 2015) of row-wise gradients (autograd/row_gradient.h), with PyTorch's update rule: only the rows
/// that have a gradient, and their moments, change. Of 16-bit parameters the step is computed in float32. A step throws
/// ValueError for a dense gradient.
class SparseAdam : public ComposedOptimizer {
 public:
  using Options = SparseAdamOptions;
  /// Takes groups, or parameters that become one group; options, or the learning rate alone. Throws ValueError as
  /// add_param_group() does.
  explicit SparseAdam(std::vector<ParamGroup> groups, const Options& options = {});
  explicit SparseAdam(std::vector<Parameter> params, const Options& o = {});
  explicit SparseAdam(const std::vector<Tensor>& params, const Options& o = {});
  SparseAdam(std::vector<Parameter> params, std::floating_point auto lr)
      : SparseAdam(std::move(params), Options{.lr = lr}) {}
  SparseAdam(const std::vector<Tensor>& params, std::floating_point auto lr) : SparseAdam(params, Options{.lr = lr}) {}

 protected:
  void update(const ParamGroup& group, int64_t number, Values& values) const override;
  void check_rows(const ParamGroup&, const Parameter&) const override {}
  void step_group(const ParamGroup& group, const std::vector<const Parameter*>& params) override;
};

}  // namespace levin::optim
