#pragma once
// Optimizers whose step is one kernel: a table of hyperparameters, the names of the slots, and the kernel's formula.

#include <levin/core/owned_ptr.h>
#include <levin/optim/optimizer.h>

#include <limits>

namespace levin::optim {

/// The valid values of a hyperparameter: at least `low` and below `high`.
struct HyperparameterRange {
  double low = 0.0, high = std::numeric_limits<double>::infinity();
};
/// Any number, also a negative one; the default range starts at 0.
inline constexpr HyperparameterRange kAnyNumber{.low = -std::numeric_limits<double>::infinity()};

/// An optimizer that updates each element by a kernel of kernels/optim.h; Args are the arguments of that kernel, and
/// their comment states the formula. The members are defined in optim/src/fused_optimizer.h and instantiated beside
/// each optimizer.
template <class Args>
class FusedOptimizer : public Optimizer {
 public:
  bool is_elementwise() const override { return true; }

 protected:
  /// One setting of the groups: its name, default `value` and range, and the member of Args that takes it.
  class Hyperparameter {
   public:
    /// A setting that the kernel does not take, a number, and a flag (0 is false).
    Hyperparameter(const char* n, std::nullptr_t, double v, HyperparameterRange r = {}) : name(n), value(v), range(r) {}
    Hyperparameter(const char* n, double Args::*member, double v, HyperparameterRange r = {})
        : name(n), value(v), range(r), number_(member) {}
    Hyperparameter(const char* n, bool Args::*member, bool v) : name(n), value(v), range(kAnyNumber), flag_(member) {}
    /// Writes a group's setting to the member of `args`.
    void write(double setting, Args& args) const;

    const char* name;
    double value;
    HyperparameterRange range;

   private:
    double Args::*number_ = nullptr;
    bool Args::*flag_ = nullptr;
  };
  /// The kernel's arguments, for the tables in derived classes.
  using StepArgs = Args;
  /// The type of the kernel's table.
  using Kernel = kernels::Kernel<void(const Args&, Stream&)>;

  /// `slots` are PyTorch's names of the kernel's slots, in its order; `capturable` is the default of that setting. A
  /// derived class adds the groups.
  FusedOptimizer(const char* name, const Kernel& kernel, std::vector<std::string> slots, bool capturable,
                 std::vector<Hyperparameter> hyperparameters);

  /// Returns the values of the kernel's arguments that are not settings, such as Adam's `decoupled`.
  virtual Args fixed_args() const { return {}; }
  /// Returns the value of a slot before the first step.
  virtual double initial_value(const ParamGroup&) const { return 0.0; }

  void check(const Settings& settings) const override;
  void step_group(const ParamGroup& group, const std::vector<const Parameter*>& params) override;
  /// Runs the kernel on the rows of the parameter and of its slots.
  void step_rows(const ParamGroup& group, const Parameter& parameter, const RowGradient& gradient) override;

 private:
  const Kernel& kernel_;
  OwnedPtr<std::vector<Hyperparameter>> hyperparameters_;  // behind a pointer to compile programs faster
};

}  // namespace levin::optim
