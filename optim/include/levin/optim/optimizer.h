#pragma once
// Base of all optimizers: parameter groups, state by parameter name, steps.

#include <levin/core/state_dict.h>
#include <levin/kernels/optim.h>

#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

namespace levin::optim {

/// Hyperparameters by PyTorch's names ("lr", "momentum", "weight_decay", ...); switches are 0 or 1. Betas are "beta1"
/// and "beta2".
using Settings = std::map<std::string, double>;

/// Parameters that share settings: `opt.param_groups()[0]["lr"] = 1e-4;`
struct ParamGroup {
  std::vector<Parameter> params{};
  Settings settings{};  ///< what is absent comes from the optimizer's arguments

  double& operator[](const std::string& name) { return settings.at(name); }
  double operator[](const std::string& name) const { return settings.at(name); }
  bool has(const std::string& name) const { return settings.count(name) != 0; }
};

/// Names tensors "0", "1", ... as PyTorch numbers them. Modules give names of their own: net.parameters().
std::vector<Parameter> named(const std::vector<Tensor>& tensors);

class Optimizer {
 public:
  using Closure = std::function<Tensor()>;

  virtual ~Optimizer();
  Optimizer(Optimizer&&) noexcept = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  Optimizer& operator=(Optimizer&&) = delete;

  /// Updates every parameter that has a gradient. Nothing is recorded.
  void step();
  /// Steps unless `found_inf` (one float32 on the parameters' device) is not 0. The host neither waits nor knows; steps
  /// that changed nothing don't count. GradScaler calls this.
  void step_unless(const Tensor& found_inf);
  /// Evaluates the loss (and its gradients) by `closure` with recording on, then steps; returns the loss.
  Tensor step(const Closure& closure);
  /// Drops the gradients, or fills them with zeros.
  void zero_grad(bool set_to_none = true);

  /// Throws ValueError for an unknown setting, a value out of range, or a parameter that is in another group.
  void add_param_group(ParamGroup group);
  std::vector<ParamGroup>& param_groups() { return *groups_; }
  const std::vector<ParamGroup>& param_groups() const { return *groups_; }
  /// All parameters of all groups, in order.
  std::vector<Parameter> parameters() const;

  /// "SGD", "Adam", ...
  const std::string& name() const { return name_; }
  /// Flat: "state.<parameter>.<slot>" (PyTorch's slot names, with "step" for all) and "param_groups.<i>.<setting>" as
  /// 0-dim f64. Tensors are handles on the optimizer's own.
  StateDict state_dict() const;
  /// Copies values in; all or nothing, one StateError lists all differences.
  void load_state_dict(const StateDict& state);

 protected:
  /// State of one parameter: the number of its steps (those that step_unless skipped included) and one tensor a slot,
  /// undefined until used.
  struct State {
    int64_t step = 0;
    std::vector<Tensor> slots;
  };

  Optimizer(std::string name, std::vector<std::string> slots, Settings defaults);
  /// Steps the parameters of a group, those with a gradient.
  virtual void step_group(const ParamGroup& group, const std::vector<const Parameter*>& params) = 0;
  /// Throws ValueError that names the setting.
  virtual void check(const Settings& settings) const;
  State& state_of(const Tensor& parameter);
  /// The slot's tensor, made (zeros like the parameter, contiguous) when absent.
  const Tensor& slot(State& state, std::size_t index, const Tensor& parameter);
  /// What the running step's kernels must obey.
  kernels::StepGuard guard() const;
  void require_range(const Settings& settings, const char* setting, double low, double high) const;

 private:
  friend class Scheduler;
  friend class ReduceLROnPlateau;
  int64_t skipped_steps() const;

  std::string name_;
  std::vector<std::string> slots_;
  Settings defaults_;
  std::shared_ptr<std::vector<ParamGroup>> groups_;  ///< shared with schedulers, so that an optimizer can move
  std::unordered_map<const TensorImpl*, State> state_;
  Tensor found_inf_;  ///< during step_unless
  Tensor skipped_;    ///< how many steps changed nothing: one float32 on the device, undefined until one may have
};

}  // namespace levin::optim
