#pragma once
// Numeric precision of a run. Independent of clipping and loops.

#include <levin/core/state_map.h>
#include <levin/data/batch.h>
#include <levin/nn/module.h>
#include <levin/optim/optimizer.h>

#include <memory>
#include <string>

namespace levin {

/// The types in which a run computes, and the scaling of its losses. make_precision() makes those that exist.
class PrecisionPlugin {
 public:
  virtual ~PrecisionPlugin() = default;
  /// The full name, such as "16-mixed".
  virtual std::string name() const = 0;

  /// Converts the module's parameters and buffers; called before the optimizers are created.
  virtual void setup(nn::Module& module) = 0;
  /// Replaces the optimizer's parameters if it steps on others than the module's own.
  virtual void attach(optim::Optimizer&) {}
  /// True if it steps on a copy of the weights, which supports only one optimizer.
  virtual bool has_own_weights() const { return false; }
  /// Converts a batch's floating-point tensors.
  virtual Batch convert(Batch batch) const = 0;
  /// Alive during the user's step: autocast, default type.
  struct Scope {
    virtual ~Scope() = default;
  };
  /// Begins such a scope on this thread; null if none is needed.
  virtual std::unique_ptr<Scope> step_scope() const = 0;
  /// Called in addition to the optimizer's own zero_grad.
  virtual void zero_grad() {}
  /// Returns the loss to run backward on.
  virtual Tensor scale(const Tensor& loss) = 0;
  /// Unscales the gradients of the optimizer's parameters. Returns one float32 on their device that is nonzero if any
  /// gradient is not finite, in which case the window must be skipped; undefined if the precision does not check. Does
  /// not synchronize.
  virtual Tensor unscale(const std::vector<Parameter>& parameters) = 0;
  /// Called after the optimizer's step, even if the step was skipped.
  virtual void after_step() {}
  /// Called after each window with the found-inf reduced over all processes. Throws LossDiverged after too many skipped
  /// windows in a row.
  virtual void update(const Tensor& found_inf) = 0;

  /// Returns or loads the weights in the form that checkpoints store. Throws StateError as Module::load_state_dict
  /// does.
  virtual StateDict weights(const nn::Module& module) const { return module.state_dict(); }
  virtual void load_weights(nn::Module& module, const StateDict& weights) { module.load_state_dict(weights); }
  /// The state of loss scaling, for checkpoints; load_state() throws StateError if a value is missing.
  virtual StateMap state() const = 0;
  virtual void load_state(const StateMap& state) = 0;
};

/// Lightning's names: "32-true", "64-true", "16-true" and "bf16-true" use one type throughout; "16-mixed" (loss
/// scaling) and "bf16-mixed" keep parameters in float32 and compute under autocast; "16-o2" (Apex's O2, loss scaling)
/// keeps the model except normalisation layers in float16 and steps on float32 master weights. "64", "32", "16" and
/// "bf16" are short for 64-true, 32-true, 16-mixed and bf16-mixed. Throws UsageError that lists all names for any
/// other.
std::unique_ptr<PrecisionPlugin> make_precision(const std::string& name);

}  // namespace levin
