#pragma once
// Training a network in parts: first the new head on frozen features, then all of it.

#include <levin/trainer/callback.h>
#include <levin/trainer/module.h>

#include <functional>

namespace levin {

/// What a fine-tuning schedule needs. A derived callback says what is frozen before training, and what is done to the
/// network and the optimizer as an epoch starts; parameter groups that it adds are added again when a run is resumed.
class BaseFinetuning : public Callback {
 public:
  /// Stops gradients of all parameters. BatchNorm goes on learning with train_bn, else it is frozen too: its running
  /// statistics stand still.
  static void freeze(nn::Module& module, bool train_bn = true);
  static void make_trainable(nn::Module& module);
  /// Those that take gradients; with train_bn = false without those of BatchNorm.
  static std::vector<Parameter> trainable_parameters(const nn::Module& root, nn::Module& part, bool train_bn = true);
  /// Makes `part` of `root` trainable, and gives what the optimizer does not have yet to it as a group with the rate
  /// lr, by default the first group's over initial_denom_lr.
  static void unfreeze_and_add_param_group(nn::Module& root, nn::Module& part, optim::Optimizer& optimizer,
                                           std::optional<double> lr = {}, double initial_denom_lr = 10.0,
                                           bool train_bn = true);

  /// In setup, before the optimizers are made.
  virtual void freeze_before_training(LevinModule& module) = 0;
  virtual void finetune(LevinModule& module, std::int64_t epoch, optim::Optimizer& optimizer) = 0;

  std::string state_key() const override { return "BaseFinetuning"; }
  StateMap state() const override;
  void load_state(const StateMap& state) override;
  void setup(RunContext& run) override;
  void on_fit_start(RunContext& run) override;
  void on_train_epoch_start(RunContext& run) override;

 private:
  // Names: the parameters of each group by optimizer, parameters that take gradients, BatchNorm layers that learn.
  struct Parts {
    std::vector<std::vector<std::vector<std::string>>> groups;
    std::vector<std::string> trainable, learning_norms;
  };
  void remember(RunContext& run);

  Parts parts_;
};

struct BackboneFinetuningOptions {
  std::string backbone = "backbone";  ///< the submodule that is frozen at first
  std::int64_t unfreeze_backbone_at_epoch = 10;
  std::function<double(std::int64_t)> lambda_func{};  ///< the factor on the backbone's rate for an epoch; 2 when empty
  double backbone_initial_ratio_lr = 0.1;             ///< of the first group's rate, at the unfreezing
  std::optional<double> backbone_initial_lr{};        ///< in its place
  bool should_align = true;                           ///< the backbone's rate never exceeds the first group's
  double initial_denom_lr = 10.0;
  bool train_bn = true;
  bool verbose = false;  ///< print both rates each epoch
  int rounding = 12;     ///< digits of them
};

/// Freezes the backbone, and from an epoch on trains it too, with a lower rate that grows by lambda_func each epoch.
/// The optimizer is made with the parameters that take gradients, e.g. head.parameters().
class BackboneFinetuning : public BaseFinetuning {
 public:
  explicit BackboneFinetuning(BackboneFinetuningOptions options = {});

  void freeze_before_training(LevinModule& module) override;
  void finetune(LevinModule& module, std::int64_t epoch, optim::Optimizer& optimizer) override;
  std::string state_key() const override { return "BackboneFinetuning"; }
  StateMap state() const override;
  void load_state(const StateMap& state) override;

 private:
  BackboneFinetuningOptions options_;
  double previous_lr_ = 0;
};

}  // namespace levin
