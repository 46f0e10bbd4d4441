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
///
/// "capturable" keeps the number of steps on the parameters' device, so that a step can be captured into a cuda::Graph:
/// each replay then counts, and takes the group's lr of that moment. The other settings are part of the recording; a
/// replay after one of them changed throws ValueError. On the cpu it changes nothing.
using Settings = std::map<std::string, double>;

/// Parameters that share settings: `opt.param_groups()[0]["lr"] = 1e-4;`
struct ParamGroup {
  std::vector<Parameter> params{};
  Settings settings{};  ///< a missing setting has the value of the optimizer's arguments

  double& operator[](const std::string& name);
  double operator[](const std::string& name) const;
  bool has(const std::string& name) const;
};

/// Names tensors "0", "1", ... as PyTorch numbers them. Modules give names of their own: net.parameters().
std::vector<Parameter> named(const std::vector<Tensor>& tensors);

class Optimizer {
 public:
  using Closure = std::function<Tensor()>;

  virtual ~Optimizer();
  Optimizer(Optimizer&&) noexcept;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  Optimizer& operator=(Optimizer&&) = delete;

  /// Updates every parameter that has a gradient. Nothing is recorded. While a graph is captured it throws StateError
  /// unless the groups are capturable and an earlier step has made the state.
  void step();
  /// Steps unless `found_inf` (one number on the parameters' device, of any shape with one element) is not 0. The host
  /// neither waits nor knows; steps that changed nothing don't count. GradScaler calls this. Throws ShapeError for any
  /// other number of elements.
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
  /// Whether a step treats each element by itself, whatever the parameter's shape, and keeps one value an element in
  /// each slot: then ranks can each step a part of a parameter (distributed::ZeroRedundancyOptimizer).
  virtual bool is_elementwise() const { return false; }
  /// Flat: "state.<parameter>.<slot>" (PyTorch's slot names, with "step" for all) and "param_groups.<i>.<setting>" as
  /// 0-dim f64. Tensors are handles on the optimizer's own.
  StateDict state_dict() const;
  /// Copies values in; all or nothing, one StateError lists all differences.
  void load_state_dict(const StateDict& state);

 protected:
  /// State of one parameter: the number of its steps and one tensor a slot, undefined until used.
  struct State {
    int64_t step = 0;  ///< with those that step_unless skipped
    Tensor count;      ///< capturable: in place of `step`, one float64 on the device, without them
    std::vector<Tensor> slots;
  };

  Optimizer(std::string name, std::vector<std::string> slots, Settings defaults);
  /// Steps the parameters of a group, those with a gradient.
  virtual void step_group(const ParamGroup& group, const std::vector<const Parameter*>& params) = 0;
  /// Throws ValueError that names the setting.
  virtual void check(const Settings& settings) const;
  State& state_of(const Parameter& parameter);
  /// Gives the kernel the number of the parameter's step, or where it lies.
  void count_step(State& state, const ParamGroup& group, const Parameter& parameter, kernels::OptimTensor& tensor);
  /// The slot's tensor, made (zeros like the parameter, contiguous) when absent.
  const Tensor& slot(State& state, std::size_t index, const Parameter& parameter);
  /// Device-side state that the kernels of the running step obey.
  kernels::StepGuard guard() const;
  /// The same for a step that is written in operations: undefined, or not 0 where nothing may change.
  const Tensor& found_inf() const { return found_inf_; }
  /// Steps of this parameter, without those that step_unless skipped; 0 before the first.
  int64_t steps_done(const Parameter& parameter) const;
  /// Where a recorded step of the group finds its learning rate; null when the step is not recorded.
  const double* recorded_lr(const ParamGroup& group, const Parameter& parameter) const;
  void require_range(const Settings& settings, const char* setting, double low, double high) const;

 private:
  friend class Scheduler;
  friend class ReduceLROnPlateau;
  using States = std::unordered_map<const TensorImpl*, State>;

  int64_t skipped_steps() const;
  int64_t steps_of(const State& state) const;
  void require_capturable(const ParamGroup& group, const Parameter& parameter) const;
  /// Throws StateError while a graph is captured: every replay would make the parameter's state anew.
  void require_not_recorded(const Parameter& parameter) const;
  void take(States loaded);

  std::string name_;
  std::vector<std::string> slots_;
  Settings defaults_;
  std::shared_ptr<std::vector<ParamGroup>> groups_;  ///< shared with schedulers, so that an optimizer can move
  std::shared_ptr<States> state_;                    ///< shared with graphs, which go on using its tensors
  Tensor found_inf_;  ///< during step_unless
  Tensor skipped_;    ///< how many steps changed nothing: one float32 on the device, undefined until one may have;
                      ///< for groups that are not capturable
};

}  // namespace levin::optim
