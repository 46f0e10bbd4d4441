#pragma once
// The base class of optimizers: parameter groups, the state of each parameter, and steps.

#include <levin/core/state_dict.h>
#include <levin/kernels/optim.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

namespace levin {
struct RowGradient;
}

namespace levin::optim {

/// Hyperparameters by PyTorch's names ("lr", "momentum", "weight_decay", ...); flags are 0 or 1. Betas are "beta1" and
/// "beta2".
///
/// "capturable" keeps the step count on the parameters' device, so that a step can be captured into a cuda::Graph: each
/// replay then counts as a step and uses the current lr of the group. The other settings are fixed by the capture; a
/// replay after one of them changed throws ValueError. On the CPU it has no effect.
using Settings = std::map<std::string, double>;

/// Parameters (`params`) that share settings: `opt.param_groups()[0]["lr"] = 1e-4;`
struct ParamGroup {
  std::vector<Parameter> params{};
  Settings settings{};  ///< a missing setting takes the value of the optimizer's options
  /// Set by the first scheduler: the rate before any scheduler changed it, from which all of them compute theirs.
  std::optional<double> initial_lr{};

  /// Returns a setting by name; throws std::out_of_range for an unknown one, which has() tells. The optimizer checks
  /// values when a group is added, not later assignments.
  double& operator[](const std::string& name);
  double operator[](const std::string& name) const;
  bool has(const std::string& name) const;
};

/// Names tensors "0", "1", ... as PyTorch numbers them. The parameters of modules have names: net.parameters().
std::vector<Parameter> named(const std::vector<Tensor>& tensors);
/// Returns one group, which takes all its settings from the optimizer's options.
std::vector<ParamGroup> one_group(std::vector<Parameter> params);

/// Base class of the optimizers: parameter groups, the state of each parameter, and steps. The parameters are shared
/// handles; the state is made at a parameter's first step, on its device and of its dtype.
class Optimizer {
 public:
  /// Computes the loss and, by backward(), the gradients.
  using Closure = std::function<Tensor()>;

  virtual ~Optimizer();
  Optimizer(Optimizer&&) noexcept;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  Optimizer& operator=(Optimizer&&) = delete;

  /// Updates every parameter that has a gradient, without recording for autograd. While a graph is captured it throws
  /// StateError unless the groups are capturable and an earlier step has created the state. Throws DTypeError if a
  /// gradient's dtype is not the parameter's, and ValueError for a row-wise gradient that the optimizer cannot apply.
  void step();
  /// Steps only if `found_inf` (one number on the parameters' device, of any shape with one element) is 0. The device
  /// decides, and the host does not wait; skipped steps are not counted. GradScaler calls this. Throws ShapeError for
  /// any other number of elements.
  void step_unless(const Tensor& found_inf);
  /// Calls `closure` with gradients enabled to compute the loss and its gradients, then steps; returns the loss.
  virtual Tensor step(const Closure& closure);
  /// Removes the gradients of all parameters, or fills them with zeros; row-wise ones are always removed.
  void zero_grad(bool set_to_none = true);

  /// Adds a group. Throws ValueError for an empty group, an unknown setting, a value out of range, a parameter that is
  /// no floating leaf, or one that is already in a group (itself or by name).
  void add_param_group(ParamGroup group);
  /// Returns the groups, whose settings may be changed between steps.
  std::vector<ParamGroup>& param_groups() { return *groups_; }
  const std::vector<ParamGroup>& param_groups() const { return *groups_; }
  /// Returns all parameters of all groups, in order.
  std::vector<Parameter> parameters() const;

  /// Returns "SGD", "Adam", ...
  const std::string& name() const { return name_; }
  /// True if a step updates each element independently of the parameter's shape and each slot keeps one value per
  /// element; then each rank can update a part of a parameter (distributed::ZeroRedundancyOptimizer).
  virtual bool is_elementwise() const { return false; }
  /// Returns a flat dictionary: "state.<parameter>.<slot>" (PyTorch's slot names, and "step" for every optimizer) and
  /// "param_groups.<i>.<setting>" as 0-dim f64. The slots are handles to the optimizer's own tensors.
  StateDict state_dict() const;
  /// Copies the values of `state`. On any mismatch it throws one StateError that lists all mismatches and changes
  /// nothing.
  void load_state_dict(const StateDict& state);

 protected:
  /// State of one parameter: its number of steps and its slots, one tensor for each name, undefined until used.
  struct State {
    int64_t step = 0;  ///< number of steps, including those that step_unless skipped
    Tensor count;      ///< if capturable, replaces `step`: one float64 on the device, without skipped steps
    std::vector<Tensor> slots;
  };

  /// Takes PyTorch's names of the class and of the state's tensors, and all settings (at least "lr" and "capturable")
  /// with their defaults. A derived class adds the groups.
  Optimizer(std::string name, std::vector<std::string> slots, Settings defaults);
  /// Updates `params`, the parameters of the group that have a gradient.
  virtual void step_group(const ParamGroup& group, const std::vector<const Parameter*>& params) = 0;
  /// Throws ValueError if this optimizer cannot apply row-wise gradients with the group's settings, as most cannot. Is
  /// called before a step changes anything.
  virtual void check_rows(const ParamGroup& group, const Parameter& parameter) const;
  /// Updates a parameter whose gradient is row-wise.
  virtual void step_rows(const ParamGroup& group, const Parameter& parameter, const RowGradient& gradient);
  /// Checks the settings of a group; throws ValueError that names the invalid one.
  virtual void check(const Settings& settings) const;
  /// Calls add_param_group() with each group; for constructors.
  void add_param_groups(std::vector<ParamGroup> groups);
  /// Returns the state of a parameter, which is created if absent.
  State& state_of(const Parameter& parameter);
  /// Returns the slot's tensor, which is created (contiguous, of the parameter's shape, filled with `initial`) if
  /// absent.
  const Tensor& slot(State& state, std::size_t index, const Parameter& parameter, double initial = 0.0);
  /// Counts a step of the parameter, and passes the count (or its address on the device) and the slots whose bit is set
  /// in `slots` to the kernel.
  void prepare(const ParamGroup& group, const Parameter& parameter, unsigned slots, double initial,
               kernels::OptimTensor& tensor);
  /// Returns the state on the device by which the kernels of the current step decide whether to update.
  kernels::StepGuard guard() const;
  /// Returns found_inf of the current step, for optimizers written in tensor operations: undefined, or nonzero if
  /// nothing may change.
  const Tensor& found_inf() const { return found_inf_; }
  /// Returns the number of steps of this parameter, without those that step_unless skipped; 0 before the first.
  int64_t steps_done(const Parameter& parameter) const;
  /// Returns the device address of the learning rate for a captured step of the group; null when not capturing.
  const double* recorded_lr(const ParamGroup& group, const Parameter& parameter) const;
  /// Throws ValueError unless low <= the setting < high.
  void require_range(const Settings& settings, const char* setting, double low, double high) const;

 private:
  friend class Scheduler;
  friend class ReduceLROnPlateau;
  using States = std::unordered_map<const TensorImpl*, State>;

  void count_step(State& state, const ParamGroup& group, const Parameter& parameter, kernels::OptimTensor& tensor);
  int64_t skipped_steps() const;
  int64_t steps_of(const State& state) const;
  void require_capturable(const ParamGroup& group, const Parameter& parameter) const;
  /// Throws StateError while a graph is captured, since every replay would create the parameter's state anew.
  void require_not_recorded(const Parameter& parameter) const;
  void take(States loaded);

  std::string name_;
  std::vector<std::string> slots_;
  Settings defaults_;
  std::shared_ptr<std::vector<ParamGroup>> groups_;  ///< shared with schedulers, so that an optimizer can be moved
  std::shared_ptr<States> state_;                    ///< shared with graphs, which keep using its tensors
  Tensor found_inf_;                                 ///< set during step_unless
  Tensor skipped_;  ///< number of skipped steps, for groups that are not capturable: one float32 on the device,
                    ///< undefined before the first step_unless
};

}  // namespace levin::optim
