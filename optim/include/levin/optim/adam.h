#pragma once

#include <levin/optim/optimizer.h>

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
class Adam : public Optimizer {
 public:
  using Options = AdamOptions;
  explicit Adam(std::vector<Parameter> params, const Options& options = {});
  explicit Adam(const std::vector<Tensor>& params, const Options& options = {}) : Adam(named(params), options) {}
  explicit Adam(std::vector<ParamGroup> groups, const Options& options = {});
  bool is_elementwise() const override { return true; }

 protected:
  Adam(const char* name, bool decoupled, std::vector<ParamGroup> groups, const Options& options);
  void step_group(const ParamGroup& group, const std::vector<const Parameter*>& params) override;
  void check(const Settings& settings) const override;

 private:
  bool decoupled_;
};

/// Adam with decoupled weight decay (Loshchilov & Hutter 2019).
class AdamW : public Adam {
 public:
  using Options = AdamWOptions;
  explicit AdamW(std::vector<Parameter> params, const Options& options = {});
  explicit AdamW(const std::vector<Tensor>& params, const Options& options = {}) : AdamW(named(params), options) {}
  explicit AdamW(std::vector<ParamGroup> groups, const Options& options = {});
};

}  // namespace levin::optim
