#pragma once

#include <levin/optim/fused_optimizer.h>

namespace levin::optim {

/// Options of SGD, with PyTorch's defaults.
struct SGDOptions {
  double lr = 1e-3;           ///< learning rate
  double momentum = 0.0;      ///< decay rate of the momentum buffer; 0 keeps none
  double dampening = 0.0;     ///< a gradient enters the momentum times 1 - dampening, except the first
  double weight_decay = 0.0;  ///< added to the gradient (L2)
  bool nesterov = false;      ///< steps by gradient + momentum * buffer; needs momentum and no dampening
  bool maximize = false;      ///< steps along the gradient instead of against it
  bool capturable = false;    ///< see Settings
};

/// Stochastic gradient descent with momentum (Polyak 1964) or Nesterov momentum (Sutskever et al. 2013), with PyTorch's
/// update rule (kernels::SgdStepArgs states it). Of row-wise gradients (autograd/row_gradient.h) only the rows are read
/// and written without momentum; with momentum, which moves every row that ever had a gradient, they are made dense.
/// With weight_decay, which would change all rows, a step throws ValueError.
class SGD : public FusedOptimizer<kernels::SgdStepArgs> {
 public:
  using Options = SGDOptions;
  /// Takes groups, or parameters that become one group; options, or the learning rate alone. Throws ValueError as
  /// add_param_group() does.
  explicit SGD(std::vector<ParamGroup> groups, const Options& options = {});
  explicit SGD(std::vector<Parameter> params, const Options& o = {});
  explicit SGD(const std::vector<Tensor>& params, const Options& o = {});
  SGD(std::vector<Parameter> params, std::floating_point auto lr) : SGD(std::move(params), Options{.lr = lr}) {}
  SGD(const std::vector<Tensor>& params, std::floating_point auto lr) : SGD(params, Options{.lr = lr}) {}

 protected:
  void check(const Settings& settings) const override;
  void check_rows(const ParamGroup& group, const Parameter& parameter) const override;
  void step_rows(const ParamGroup& group, const Parameter& parameter, const RowGradient& gradient) override;
};

}  // namespace levin::optim
