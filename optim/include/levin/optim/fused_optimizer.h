#pragma once
// Optimizers whose step is one kernel: a table of hyperparameters, the names of the slots, and the kernel's formula.

#include <levin/optim/optimizer.h>

#include <limits>
#include <utility>

namespace levin::optim {

/// The tensors of one fused step. A parameter that is not contiguous is updated in a copy, which is copied back.
class FusedStep {
 public:
  explicit FusedStep(const std::vector<const Parameter*>& params);

  template <class Args>
  void run(const kernels::Kernel<void(const Args&, Stream&)>& kernel, Args args) {
    args.tensors = tensors;
    Stream stream = current_stream(params_[0]->device());
    kernel(args, stream);
    finish();
  }

  std::vector<kernels::OptimTensor> tensors;

 private:
  void finish();

  const std::vector<const Parameter*>& params_;
  std::vector<Tensor> values_, grads_;
};

/// The valid values of a hyperparameter: at least `low` and below `high`.
struct HyperparameterRange {
  double low = 0.0, high = std::numeric_limits<double>::infinity();
};
inline constexpr HyperparameterRange kAnyNumber{.low = -std::numeric_limits<double>::infinity()};

/// An optimizer that updates each element by a kernel of kernels/optim.h; Args are the arguments of that kernel.
template <class Args>
class FusedOptimizer : public Optimizer {
 public:
  bool is_elementwise() const override { return true; }

 protected:
  /// One setting of the groups: its name, default and range, and the member of Args that takes it (or nullptr).
  class Hyperparameter {
   public:
    Hyperparameter(const char* n, std::nullptr_t, double v, HyperparameterRange r = {}) : name(n), value(v), range(r) {}
    Hyperparameter(const char* n, double Args::*member, double v, HyperparameterRange r = {})
        : name(n), value(v), range(r), number_(member) {}
    Hyperparameter(const char* n, bool Args::*member, bool v) : name(n), value(v), range(kAnyNumber), flag_(member) {}
    void write(double setting, Args& args) const {
      if (number_) args.*number_ = setting;
      if (flag_) args.*flag_ = setting != 0;
    }

    const char* name;
    double value;
    HyperparameterRange range;

   private:
    double Args::*number_ = nullptr;
    bool Args::*flag_ = nullptr;
  };
  using StepArgs = Args;
  using Kernel = kernels::Kernel<void(const Args&, Stream&)>;

  /// `slots` are PyTorch's names of the kernel's slots, in its order. A derived class adds the groups.
  FusedOptimizer(const char* name, const Kernel& kernel, std::vector<std::string> slots, bool capturable,
                 std::vector<Hyperparameter> hyperparameters)
      : Optimizer(name, std::move(slots), defaults_of(hyperparameters, capturable)),
        kernel_(kernel),
        hyperparameters_(std::move(hyperparameters)) {}

  /// Returns the values of the kernel's arguments that are no settings, such as Adam's `decoupled`.
  virtual Args fixed_args() const { return {}; }
  /// Returns the value of a slot before the first step.
  virtual double initial_value(const ParamGroup&) const { return 0.0; }

  void check(const Settings& settings) const override {
    for (const Hyperparameter& h : hyperparameters_) require_range(settings, h.name, h.range.low, h.range.high);
  }

  void step_group(const ParamGroup& group, const std::vector<const Parameter*>& params) override {
    Args args = fixed_args();
    for (const Hyperparameter& h : hyperparameters_) h.write(group[h.name], args);
    FusedStep step(params);
    for (std::size_t i = 0; i < params.size(); ++i)
      prepare(group, *params[i], args.slots(), initial_value(group), step.tensors[i]);
    args.guard = guard();
    args.lr_at = recorded_lr(group, *params[0]);
    step.run(kernel_, args);
  }

 private:
  static Settings defaults_of(const std::vector<Hyperparameter>& hyperparameters, bool capturable) {
    Settings defaults{{"capturable", capturable}};
    for (const Hyperparameter& h : hyperparameters) defaults[h.name] = h.value;
    return defaults;
  }

  const Kernel& kernel_;
  std::vector<Hyperparameter> hyperparameters_;
};

}  // namespace levin::optim
