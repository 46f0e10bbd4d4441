#pragma once
// Float32 weights behind a float16 model: Apex's O2.

#include <levin/nn/module.h>
#include <levin/optim/optimizer.h>

namespace levin {

/// The optimizer steps on float32 masters; the model has them rounded to float16. Normalisation layers stay in float32
/// altogether. Under autocast products and losses take the right types:
///
///   MasterWeights masters(net);                       // net is in float16 now
///   optim::AdamW opt(net.parameters());
///   masters.attach(opt);                              // opt steps on the masters now
///   GradScaler scaler;
///   for (...) {
///     opt.zero_grad();
///     masters.zero_grad();
///     { autocast on(kHalf); loss = cross_entropy(net(x), y); }
///     scaler.scale(loss).backward();
///     masters.take_gradients();                       // clipping and scaler.unscale_(opt) see float32 from here on
///     scaler.step(opt);
///     scaler.update();
///     masters.give_weights();
///   }
class MasterWeights {
 public:
  MasterWeights();
  ~MasterWeights();
  MasterWeights(const MasterWeights&);
  MasterWeights(MasterWeights&&) noexcept;
  MasterWeights& operator=(const MasterWeights&);
  MasterWeights& operator=(MasterWeights&&) noexcept;
  explicit MasterWeights(nn::Module& module);

  /// Converts the module; masters begin with its float32 values, or go on where they fit what the module has.
  void setup(nn::Module& module);
  /// Puts masters in the place of the float16 parameters in the optimizer's groups. Call it before the first step and
  /// after the module is on its device; a weight that was changed since setup() is what counts.
  void attach(optim::Optimizer& optimizer);
  /// Drops the model's gradients.
  void zero_grad();
  /// Moves the model's gradients to the masters, in float32 and still scaled.
  void take_gradients();
  /// Rounds the masters into the model. Changes nothing after a step that was skipped.
  void give_weights();

  /// The module's state dictionary with the masters' values, all floating tensors in float32; and back. Throws
  /// StateError as Module::load_state_dict does.
  StateDict state_dict(const nn::Module& module) const;
  void load_state_dict(nn::Module& module, const StateDict& state);

 private:
  struct Pair {
    std::string name;  ///< the module's
    Tensor model;      ///< float16
    Tensor master;     ///< float32
    bool attached = false;
  };
  void refresh();

  std::vector<Pair> pairs_;
};

}  // namespace levin
