#pragma once

#include <levin/optim/fused_optimizer.h>

namespace levin::optim {

struct Betas {
  double first = 0.9;
  double second = 0.999;
};

struct AdamOptions {
  double lr = 1e-3;
  Betas betas{};
  double eps = 1e-8;
  double weight_decay = 0.0;  ///< added to the gradient (L2)
  bool amsgrad = false;       ///< Reddi et al. 2018
  bool maximize = false;
  bool capturable = false;  ///< see Settings
};

struct AdamWOptions {
  double lr = 1e-3;
  Betas betas{};
  double eps = 1e-8;
  double weight_decay = 1e-2;  ///< decoupled: applied to the parameter
  bool amsgrad = false;
  bool maximize = false;
  bool capturable = false;  ///< see Settings
};

/// Adam (Kingma & Ba 2015), with PyTorch's update rule.
class Adam : public FusedOptimizer<kernels::AdamStepArgs> {
 public:
  using Options = AdamOptions;
  explicit Adam(std::vector<ParamGroup> groups, const Options& options = {});
  explicit Adam(std::vector<Parameter> params, const Options& o = {}) : Adam(one_group(std::move(params)), o) {}
  explicit Adam(const std::vector<Tensor>& params, const Options& o = {}) : Adam(named(params), o) {}
  template <std::floating_point Rate>
  Adam(std::vector<Parameter> params, Rate lr) : Adam(std::move(params), Options{.lr = lr}) {}
  template <std::floating_point Rate>
  Adam(const std::vector<Tensor>& params, Rate lr) : Adam(params, Options{.lr = lr}) {}

 protected:
  Adam(const char* name, bool decoupled, std::vector<ParamGroup> groups, const Options& options);
  kernels::AdamStepArgs fixed_args() const override { return {.tensors = {}, .decoupled = decoupled_}; }

 private:
  bool decoupled_;
};

/// Adam with decoupled weight decay (Loshchilov & Hutter 2019).
class AdamW : public Adam {
 public:
  using Options = AdamWOptions;
  explicit AdamW(std::vector<ParamGroup> groups, const Options& options = {});
  explicit AdamW(std::vector<Parameter> params, const Options& o = {}) : AdamW(one_group(std::move(params)), o) {}
  explicit AdamW(const std::vector<Tensor>& params, const Options& o = {}) : AdamW(named(params), o) {}
  template <std::floating_point Rate>
  AdamW(std::vector<Parameter> params, Rate lr) : AdamW(std::move(params), Options{.lr = lr}) {}
  template <std::floating_point Rate>
  AdamW(const std::vector<Tensor>& params, Rate lr) : AdamW(params, Options{.lr = lr}) {}
};

}  // namespace levin::optim
