#pragma once
// In which types a run computes. Knows nothing of clipping and loops.

#include <levin/data/batch.h>
#include <levin/nn/module.h>
#include <levin/optim/optimizer.h>
#include <levin/trainer/state_map.h>

#include <memory>
#include <string>

namespace levin {

class Precision {
 public:
  virtual ~Precision() = default;
  virtual std::string name() const = 0;

  /// Converts the module's parameters and buffers, before the optimizers are made.
  virtual void setup(nn::Module& module) = 0;
  /// Gives the optimizer what it shall step on, where that is not the module's own parameters.
  virtual void attach(optim::Optimizer&) {}
  /// Steps go to weights kept beside the module's, which one optimizer alone can do.
  virtual bool has_own_weights() const { return false; }
  /// Converts a batch's floating tensors.
  virtual Batch convert(Batch batch) const = 0;
  /// Lives around the user's step: autocast, default type. May be null.
  struct Scope {
    virtual ~Scope() = default;
  };
  virtual std::unique_ptr<Scope> step_scope() const = 0;
  /// Beside the optimizer's own zero_grad.
  virtual void zero_grad() {}
  /// The loss that backward runs on.
  virtual Tensor scale(const Tensor& loss) = 0;
  /// Brings the gradients of the optimizer's parameters back to scale. One float32 on their device comes back, not 0
  /// where one of them is not finite and the window must be skipped; undefined where that is not asked. Does not wait.
  virtual Tensor unscale(const std::vector<Parameter>& parameters) = 0;
  /// After the optimizer's step, also one that changed nothing.
  virtual void after_step() {}
  /// After each window, with the found-inf that all processes agreed on. Throws LossDiverged after too many skipped
  /// windows in a row.
  virtual void update(const Tensor& found_inf) = 0;

  /// The weights as a checkpoint has them, and back.
  virtual StateDict weights(const nn::Module& module) const { return module.state_dict(); }
  virtual void load_weights(nn::Module& module, const StateDict& weights) { module.load_state_dict(weights); }
  virtual StateMap state() const = 0;
  virtual void load_state(const StateMap& state) = 0;
};

/// By Lightning's names: "32-true", "64-true", "16-true" and "bf16-true" have everything in one type; "16-mixed" (loss
/// scaling) and "bf16-mixed" keep parameters in float32 and compute under autocast; "16-o2" (Apex's O2, loss scaling)
/// has the model in float16 but for normalisation layers, and steps on float32 master weights. "64", "32", "16" and
/// "bf16" stand for 64-true, 32-true, 16-mixed and bf16-mixed. UsageError names all of them for any other name.
std::unique_ptr<Precision> make_precision(const std::string& name);

}  // namespace levin
