#pragma once
// Float32 master weights for a float16 model: Apex's O2.

#include <levin/nn/module.h>
#include <levin/optim/optimizer.h>

namespace levin {

/// The optimizer steps on float32 masters, and the model holds them rounded to float16. Normalisation layers stay in
/// float32. Under autocast, matrix products and losses compute in the right types:
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
  /// Calls setup(); the default constructor leaves that to the caller.
  explicit MasterWeights(nn::Module& module);

  /// Converts the module. The masters are initialized from its float32 values; existing masters that match the module
  /// are kept.
  void setup(nn::Module& module);
  /// Replaces the float16 parameters in the optimizer's groups by the masters. Call it before the first step and after
  /// the module is on its device; weights changed since setup() are taken over.
  void attach(optim::Optimizer& optimizer);
  /// Clears the model's gradients.
  void zero_grad();
  /// Moves the model's gradients to the masters, in float32 and still scaled.
  void take_gradients();
  /// Rounds the masters into the model. Has no effect after a skipped step.
  void give_weights();

  /// Returns or loads the module's state dict with the masters' values, all floating-point tensors in float32. Throws
  /// StateError as Module::load_state_dict does.
  StateDict state_dict(const nn::Module& module) const;
  void load_state_dict(nn::Module& module, const StateDict& state);

 private:
  struct Pair {
    std::string name;  ///< name of the parameter in the module
    Tensor model;      ///< float16
    Tensor master;     ///< float32
    bool attached = false;
  };
  void refresh();

  std::vector<Pair> pairs_;
};

}  // namespace levin
