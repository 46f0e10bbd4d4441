#pragma once
// In which types a run computes. Knows nothing of clipping and loops.

#include <levin/data/batch.h>
#include <levin/nn/module.h>
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
  /// Converts a batch's floating tensors.
  virtual Batch convert(Batch batch) const = 0;
  /// Lives around the user's step: autocast, default type. May be null.
  struct Scope {
    virtual ~Scope() = default;
  };
  virtual std::unique_ptr<Scope> step_scope() const = 0;
  /// The loss that backward runs on.
  virtual Tensor scale(const Tensor& loss) = 0;
  /// Brings the gradients back to scale; true when one of them is not finite and the window must be skipped.
  virtual bool unscale(const std::vector<Parameter>& parameters) = 0;
  /// After each window, on which all processes agreed. Throws LossDiverged after too many skipped ones in a row.
  virtual void update(bool skipped) = 0;
  virtual StateMap state() const = 0;
  virtual void load_state(const StateMap& state) = 0;
};

/// By Lightning's names: "32-true", "64-true", "16-true" and "bf16-true" have everything in one type; "16-mixed" (loss
/// scaling) and "bf16-mixed" keep parameters in float32 and compute under autocast. "64", "32", "16" and "bf16" stand
/// for 64-true, 32-true, 16-mixed and bf16-mixed. UsageError names what is built for any other name.
std::unique_ptr<Precision> make_precision(const std::string& name);

}  // namespace levin
