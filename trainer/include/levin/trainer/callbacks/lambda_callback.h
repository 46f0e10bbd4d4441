#pragma once
// A callback from functions, for what is too small for a class.

#include <levin/trainer/callback.h>
#include <levin/trainer/module.h>

#include <functional>

namespace levin {

/// One function for each hook of Callback, by its name; those that are empty do nothing.
struct LambdaHooks {
  using Hook = std::function<void(RunContext&)>;
  using BatchHook = std::function<void(RunContext&, const Batch&, int)>;

  Hook setup{}, teardown{}, on_fit_start{}, on_fit_end{}, on_sanity_check_start{}, on_sanity_check_end{};
  std::function<void(RunContext&, const std::exception&)> on_exception{};
  std::function<void(RunContext&, StateMap&)> on_save_checkpoint{};
  std::function<void(RunContext&, const StateMap&)> on_load_checkpoint{};

  Hook on_train_start{}, on_train_end{}, on_train_epoch_start{}, on_train_epoch_end{};
  BatchHook on_train_batch_start{};
  std::function<void(RunContext&, const StepOutput&, const Batch&, int)> on_train_batch_end{};
  Hook on_before_zero_grad{};
  std::function<void(RunContext&, const Tensor&)> on_before_backward{};
  Hook on_after_backward{}, on_before_optimizer_step{};

  Hook on_validation_start{}, on_validation_end{}, on_validation_epoch_start{}, on_validation_epoch_end{};
  BatchHook on_validation_batch_start{}, on_validation_batch_end{};
  Hook on_test_start{}, on_test_end{}, on_test_epoch_start{}, on_test_epoch_end{};
  BatchHook on_test_batch_start{}, on_test_batch_end{};
  Hook on_predict_start{}, on_predict_end{}, on_predict_epoch_start{}, on_predict_epoch_end{};
  BatchHook on_predict_batch_start{}, on_predict_batch_end{};
};

/// `config.callbacks = {LambdaCallback({.on_train_end = [](RunContext& run) { ... }})};`
class LambdaCallback : public Callback {
 public:
  explicit LambdaCallback(LambdaHooks hooks);

  void setup(RunContext& run) override;
  void teardown(RunContext& run) override;
  void on_fit_start(RunContext& run) override;
  void on_fit_end(RunContext& run) override;
  void on_sanity_check_start(RunContext& run) override;
  void on_sanity_check_end(RunContext& run) override;
  void on_exception(RunContext& run, const std::exception& e) override;
  void on_save_checkpoint(RunContext& run, StateMap& state) override;
  void on_load_checkpoint(RunContext& run, const StateMap& state) override;

  void on_train_start(RunContext& run) override;
  void on_train_end(RunContext& run) override;
  void on_train_epoch_start(RunContext& run) override;
  void on_train_epoch_end(RunContext& run) override;
  void on_train_batch_start(RunContext& run, const Batch& b, int i) override;
  void on_train_batch_end(RunContext& run, const StepOutput& out, const Batch& b, int i) override;
  void on_before_zero_grad(RunContext& run) override;
  void on_before_backward(RunContext& run, const Tensor& loss) override;
  void on_after_backward(RunContext& run) override;
  void on_before_optimizer_step(RunContext& run) override;

  void on_validation_start(RunContext& run) override;
  void on_validation_end(RunContext& run) override;
  void on_validation_epoch_start(RunContext& run) override;
  void on_validation_epoch_end(RunContext& run) override;
  void on_validation_batch_start(RunContext& run, const Batch& b, int i) override;
  void on_validation_batch_end(RunContext& run, const Batch& b, int i) override;

  void on_test_start(RunContext& run) override;
  void on_test_end(RunContext& run) override;
  void on_test_epoch_start(RunContext& run) override;
  void on_test_epoch_end(RunContext& run) override;
  void on_test_batch_start(RunContext& run, const Batch& b, int i) override;
  void on_test_batch_end(RunContext& run, const Batch& b, int i) override;

  void on_predict_start(RunContext& run) override;
  void on_predict_end(RunContext& run) override;
  void on_predict_epoch_start(RunContext& run) override;
  void on_predict_epoch_end(RunContext& run) override;
  void on_predict_batch_start(RunContext& run, const Batch& b, int i) override;
  void on_predict_batch_end(RunContext& run, const Batch& b, int i) override;

 private:
  LambdaHooks hooks_;
};

}  // namespace levin
