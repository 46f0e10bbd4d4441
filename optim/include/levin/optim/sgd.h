#pragma once

#include <levin/optim/fused_optimizer.h>

namespace levin::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  bool maximize = false;
  bool capturable = false;  ///< see Settings
};

/// Stochastic gradient descent with momentum (Polyak 1964) or Nesterov momentum (Sutskever et al. 2013), with PyTorch's
/// update rule. Of row-wise gradients (autograd/row_gradient.h) only the rows are read and written without momentum;
/// with momentum, which moves every row that ever had a gradient, they are made dense. They exclude weight_decay.
class SGD : public FusedOptimizer<kernels::SgdStepArgs> {
 public:
  using Options = SGDOptions;
  explicit SGD(std::vector<ParamGroup> groups, const Options& options = {});
  explicit SGD(std::vector<Parameter> params, const Options& o = {}) : SGD(one_group(std::move(params)), o) {}
  explicit SGD(const std::vector<Tensor>& params, const Options& o = {}) : SGD(named(params), o) {}
  template <std::floating_point Rate>
  SGD(std::vector<Parameter> params, Rate lr) : SGD(std::move(params), Options{.lr = lr}) {}
  template <std::floating_point Rate>
  SGD(const std::vector<Tensor>& params, Rate lr) : SGD(params, Options{.lr = lr}) {}

 protected:
  void check(const Settings& settings) const override;
  void check_rows(const ParamGroup& group, const Parameter& parameter) const override;
  void step_rows(const ParamGroup& group, const Parameter& parameter, const RowGradient& gradient) override;
};

}  // namespace levin::optim
