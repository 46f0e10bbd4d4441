#pragma once

#include <levin/optim/fused_optimizer.h>

namespace levin::optim {

/// Decay rates, each in [0, 1), of Adam's running averages: `first` of the gradient, `second` of its square.
struct Betas {
  double first = 0.9;
  double second = 0.999;
};

/// Options of Adam, with PyTorch's defaults.
struct AdamOptions {
  double lr = 1e-3;           ///< learning rate
  Betas betas{};              ///< decay rates of both moments
  double eps = 1e-8;          ///< added to the denominator, the root of the second moment
  double weight_decay = 0.0;  ///< added to the gradient (L2)
  bool amsgrad = false;       ///< divides by the largest second moment so far (Reddi et al. 2018)
  bool maximize = false;      ///< steps along the gradient instead of against it
  bool capturable = false;    ///< see Settings
};

/// Options of AdamW, with PyTorch's defaults.
struct AdamWOptions {
  double lr = 1e-3;            ///< learning rate
  Betas betas{};               ///< decay rates of both moments
  double eps = 1e-8;           ///< added to the denominator, the root of the second moment
  double weight_decay = 1e-2;  ///< decoupled: multiplies the parameter by 1 - lr * weight_decay
  bool amsgrad = false;        ///< divides by the largest second moment so far (Reddi et al. 2018)
  bool maximize = false;       ///< steps along the gradient instead of against it
  bool capturable = false;     ///< see Settings
};

/// Adam (Kingma & Ba 2015), with PyTorch's update rule (kernels::AdamStepArgs states it).
class Adam : public FusedOptimizer<kernels::AdamStepArgs> {
 public:
  using Options = AdamOptions;
  /// Takes groups, or parameters that become one group; options, or the learning rate alone. Throws ValueError as
  /// add_param_group() does.
  explicit Adam(std::vector<ParamGroup> groups, const Options& options = {});
  explicit Adam(std::vector<Parameter> params, const Options& o = {});
  explicit Adam(const std::vector<Tensor>& params, const Options& o = {});
  Adam(std::vector<Parameter> params, std::floating_point auto lr) : Adam(std::move(params), Options{.lr = lr}) {}
  Adam(const std::vector<Tensor>& params, std::floating_point auto lr) : Adam(params, Options{.lr = lr}) {}

 protected:
  /// Takes the name of a derived class and whether its weight decay is decoupled.
  Adam(const char* name, bool decoupled, std::vector<ParamGroup> groups, const Options& options);
  kernels::AdamStepArgs fixed_args() const override { return {.tensors = {}, .decoupled = decoupled_}; }

 private:
  bool decoupled_;
};

/// Adam with decoupled weight decay (Loshchilov & Hutter 2019).
class AdamW : public Adam {
 public:
  using Options = AdamWOptions;
  /// Takes groups, or parameters that become one group; options, or the learning rate alone. Throws ValueError as
  /// add_param_group() does.
  explicit AdamW(std::vector<ParamGroup> groups, const Options& options = {});
  explicit AdamW(std::vector<Parameter> params, const Options& o = {});
  explicit AdamW(const std::vector<Tensor>& params, const Options& o = {});
  AdamW(std::vector<Parameter> params, std::floating_point auto lr) : AdamW(std::move(params), Options{.lr = lr}) {}
  AdamW(const std::vector<Tensor>& params, std::floating_point auto lr) : AdamW(params, Options{.lr = lr}) {}
};

}  // namespace levin::optim
