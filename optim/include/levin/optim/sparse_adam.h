#pragma once

#include <levin/optim/composed_optimizer.h>

namespace levin::optim {

struct SparseAdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  bool maximize = false;
};

/// Adam (Kingma & Ba 2015) of row-wise gradients (autograd/row_gradient.h), with PyTorch's update rule: only the rows
/// that have a gradient, and their moments, change. Throws ValueError for a dense gradient.
class SparseAdam : public ComposedOptimizer {
 public:
  using Options = SparseAdamOptions;
  explicit SparseAdam(std::vector<ParamGroup> groups, const Options& options = {});
  explicit SparseAdam(std::vector<Parameter> params, const Options& o = {})
      : SparseAdam(one_group(std::move(params)), o) {}
  explicit SparseAdam(const std::vector<Tensor>& params, const Options& o = {}) : SparseAdam(named(params), o) {}
  template <std::floating_point Rate>
  SparseAdam(std::vector<Parameter> params, Rate lr) : SparseAdam(std::move(params), Options{.lr = lr}) {}
  template <std::floating_point Rate>
  SparseAdam(const std::vector<Tensor>& params, Rate lr) : SparseAdam(params, Options{.lr = lr}) {}

 protected:
  void update(const ParamGroup& group, int64_t number, Values& values) const override;
  void check_rows(const ParamGroup&, const Parameter&) const override {}
  void step_group(const ParamGroup& group, const std::vector<const Parameter*>& params) override;
};

}  // namespace levin::optim
