#pragma once
// Fine-tuning in stages: first the new head on frozen features, then all layers.

#include <levin/trainer/callback.h>
#include <levin/trainer/module.h>

#include <functional>

namespace levin {

/// Base class of fine-tuning schedules. A derived class freezes layers before training and changes the network and the
/// optimizer at the start of an epoch. Parameter groups that it adds are added again when a run is resumed.
class BaseFinetuning : public Callback {
 public:
  /// Disables gradients for all parameters. BatchNorm layers keep training with train_bn; without it they are frozen
  /// too, including their running statistics.
  static void freeze(nn::Module& module, bool train_bn = true);
  /// Enables gradients for all parameters, and lets BatchNorm layers train.
  static void make_trainable(nn::Module& module);
  /// Returns the parameters of `part` that require gradients, under their names in `root`; without those of BatchNorm
  /// if train_bn is false.
  static std::vector<Parameter> trainable_parameters(const nn::Module& root, nn::Module& part, bool train_bn = true);
  /// Makes `part` of `root` trainable and adds its parameters that are not in the optimizer yet as a group with
  /// learning rate `lr`, by default that of the first group divided by initial_denom_lr.
  static void unfreeze_and_add_param_group(nn::Module& root, nn::Module& part, optim::Optimizer& optimizer,
                                           std::optional<double> lr = {}, double initial_denom_lr = 10.0,
                                           bool train_bn = true);

  /// Called in setup, before the optimizers are created.
  virtual void freeze_before_training(LevinModule& module) = 0;
  /// Called at the start of each training epoch (from 0), for each optimizer.
  virtual void finetune(LevinModule& module, std::int64_t epoch, optim::Optimizer& optimizer) = 0;

  std::string state_key() const override { return "BaseFinetuning"; }
  StateMap state() const override;
  void load_state(const StateMap& state) override;
  void setup(RunContext& run) override;
  void on_fit_start(RunContext& run) override;
  void on_train_epoch_start(RunContext& run) override;

 private:
  // Names of the parameters in each group by optimizer, of the parameters that require gradients, and of the BatchNorm
  // layers that train.
  struct Parts {
    std::vector<std::vector<std::vector<std::string>>> groups;
    std::vector<std::string> trainable, learning_norms;
  };
  void remember(RunContext& run);

  Parts parts_;
};

/// Options of BackboneFinetuning, with Lightning's defaults.
struct BackboneFinetuningOptions {
  std::string backbone = "backbone";             ///< name of the submodule that is frozen at first
  std::int64_t unfreeze_backbone_at_epoch = 10;  ///< epoch, from 0, in which the backbone begins to train
  /// Factor on the backbone's rate for an epoch, given its number from 1; 2 if empty.
  std::function<double(std::int64_t)> lambda_func{};
  double backbone_initial_ratio_lr = 0.1;       ///< initial rate of the backbone over the first group's
  std::optional<double> backbone_initial_lr{};  ///< overrides backbone_initial_ratio_lr
  bool should_align = true;                     ///< the backbone's rate never exceeds the first group's
  double initial_denom_lr = 10.0;               ///< no effect, since the backbone's rate is given; above 0
  bool train_bn = true;                         ///< BatchNorm layers of the backbone always train; if false, never
  bool verbose = false;                         ///< print both rates at every epoch
  int rounding = 12;                            ///< digits of the printed rates
};

/// Freezes the backbone and trains it too from a given epoch on, with a lower rate that is multiplied by lambda_func
/// each epoch. Create the optimizer with the parameters that require gradients, e.g. head.parameters().
class BackboneFinetuning : public BaseFinetuning {
 public:
  /// Throws UsageError for rates that are not above 0 and for a negative epoch.
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
