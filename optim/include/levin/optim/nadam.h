#pragma once

#include <levin/optim/adam.h>
#include <levin/optim/composed_optimizer.h>

namespace levin::optim {

struct NAdamOptions {
  double lr = 2e-3;
  Betas betas{};
  double eps = 1e-8;
  double weight_decay = 0.0;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;  ///< applied to the parameter instead of the gradient
  bool maximize = false;
};

/// Adam with Nesterov's momentum (Dozat 2016).
class NAdam : public ComposedOptimizer {
 public:
  using Options = NAdamOptions;
  explicit NAdam(std::vector<ParamGroup> groups, const Options& options = {});
  explicit NAdam(std::vector<Parameter> params, const Options& o = {}) : NAdam(one_group(std::move(params)), o) {}
  explicit NAdam(const std::vector<Tensor>& params, const Options& o = {}) : NAdam(named(params), o) {}
  template <std::floating_point Rate>
  NAdam(std::vector<Parameter> params, Rate lr) : NAdam(std::move(params), Options{.lr = lr}) {}
  template <std::floating_point Rate>
  NAdam(const std::vector<Tensor>& params, Rate lr) : NAdam(params, Options{.lr = lr}) {}
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
