#pragma once

#include <levin/optim/adam.h>
#include <levin/optim/composed_optimizer.h>

namespace levin::optim {

/// Options of NAdam, with PyTorch's defaults.
struct NAdamOptions {
  double lr = 2e-3;                     ///< learning rate
  Betas betas{};                        ///< decay rates of both moments
  double eps = 1e-8;                    ///< added to the denominator, the root of the second moment
  double weight_decay = 0.0;            ///< added to the gradient (L2), or see decoupled_weight_decay
  double momentum_decay = 4e-3;         ///< the momentum of step t is beta1 (1 - 0.96^(t * momentum_decay) / 2)
  bool decoupled_weight_decay = false;  ///< weight_decay multiplies the parameter by 1 - lr * weight_decay
  bool maximize = false;                ///< steps along the gradient instead of against it
};

/// Adam with Nesterov's momentum (Dozat 2016), with PyTorch's update rule.
class NAdam : public ComposedOptimizer {
 public:
  using Options = NAdamOptions;
  /// Takes groups, or parameters that become one group; options, or the learning rate alone. Throws ValueError as
  /// add_param_group() does.
  explicit NAdam(std::vector<ParamGroup> groups, const Options& options = {});
  explicit NAdam(std::vector<Parameter> params, const Options& o = {});
  explicit NAdam(const std::vector<Tensor>& params, const Options& o = {});
  NAdam(std::vector<Parameter> params, std::floating_point auto lr) : NAdam(std::move(params), Options{.lr = lr}) {}
  NAdam(const std::vector<Tensor>& params, std::floating_point auto lr) : NAdam(params, Options{.lr = lr}) {}
  bool is_elementwise() const override { return true; }

 protected:
  void update(const ParamGroup& group, int64_t number, Values& values) const override;
  void step_group(const ParamGroup& group, const std::vector<const Parameter*>& params) override;

 private:
  /// Products of the momenta of steps 1, 2, ... of the group whose step runs.
  struct Products {
    double beta1 = 0, decay = 0;
    std::vector<double> values{1.0};
  };
  Products products_;
};

}  // namespace levin::optim
