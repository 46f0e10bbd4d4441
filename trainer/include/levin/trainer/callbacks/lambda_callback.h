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
  explicit LambdaCallback(LambdaHooks hooks) : hooks_(std::move(hooks)) {}

  void setup(RunContext& run) override { call(hooks_.setup, run); }
  void teardown(RunContext& run) override { call(hooks_.teardown, run); }
  void on_fit_start(RunContext& run) override { call(hooks_.on_fit_start, run); }
  void on_fit_end(RunContext& run) override { call(hooks_.on_fit_end, run); }
  void on_sanity_check_start(RunContext& run) override { call(hooks_.on_sanity_check_start, run); }
  void on_sanity_check_end(RunContext& run) override { call(hooks_.on_sanity_check_end, run); }
  void on_exception(RunContext& run, const std::exception& e) override { call(hooks_.on_exception, run, e); }
  void on_save_checkpoint(RunContext& run, StateMap& state) override { call(hooks_.on_save_checkpoint, run, state); }
  void on_load_checkpoint(RunContext& run, const StateMap& state) override {
    call(hooks_.on_load_checkpoint, run, state);
  }

  void on_train_start(RunContext& run) override { call(hooks_.on_train_start, run); }
  void on_train_end(RunContext& run) override { call(hooks_.on_train_end, run); }
  void on_train_epoch_start(RunContext& run) override { call(hooks_.on_train_epoch_start, run); }
  void on_train_epoch_end(RunContext& run) override { call(hooks_.on_train_epoch_end, run); }
  void on_train_batch_start(RunContext& run, const Batch& b, int i) override {
    call(hooks_.on_train_batch_start, run, b, i);
  }
  void on_train_batch_end(RunContext& run, const StepOutput& out, const Batch& b, int i) override {
    call(hooks_.on_train_batch_end, run, out, b, i);
  }
  void on_before_zero_grad(RunContext& run) override { call(hooks_.on_before_zero_grad, run); }
  void on_before_backward(RunContext& run, const Tensor& loss) override { call(hooks_.on_before_backward, run, loss); }
  void on_after_backward(RunContext& run) override { call(hooks_.on_after_backward, run); }
  void on_before_optimizer_step(RunContext& run) override { call(hooks_.on_before_optimizer_step, run); }

  void on_validation_start(RunContext& run) override { call(hooks_.on_validation_start, run); }
  void on_validation_end(RunContext& run) override { call(hooks_.on_validation_end, run); }
  void on_validation_epoch_start(RunContext& run) override { call(hooks_.on_validation_epoch_start, run); }
  void on_validation_epoch_end(RunContext& run) override { call(hooks_.on_validation_epoch_end, run); }
  void on_validation_batch_start(RunContext& run, const Batch& b, int i) override {
    call(hooks_.on_validation_batch_start, run, b, i);
  }
  void on_validation_batch_end(RunContext& run, const Batch& b, int i) override {
    call(hooks_.on_validation_batch_end, run, b, i);
  }

  void on_test_start(RunContext& run) override { call(hooks_.on_test_start, run); }
  void on_test_end(RunContext& run) override { call(hooks_.on_test_end, run); }
  void on_test_epoch_start(RunContext& run) override { call(hooks_.on_test_epoch_start, run); }
  void on_test_epoch_end(RunContext& run) override { call(hooks_.on_test_epoch_end, run); }
  void on_test_batch_start(RunContext& run, const Batch& b, int i) override {
    call(hooks_.on_test_batch_start, run, b, i);
  }
  void on_test_batch_end(RunContext& run, const Batch& b, int i) override { call(hooks_.on_test_batch_end, run, b, i); }

  void on_predict_start(RunContext& run) override { call(hooks_.on_predict_start, run); }
  void on_predict_end(RunContext& run) override { call(hooks_.on_predict_end, run); }
  void on_predict_epoch_start(RunContext& run) override { call(hooks_.on_predict_epoch_start, run); }
  void on_predict_epoch_end(RunContext& run) override { call(hooks_.on_predict_epoch_end, run); }
  void on_predict_batch_start(RunContext& run, const Batch& b, int i) override {
    call(hooks_.on_predict_batch_start, run, b, i);
  }
  void on_predict_batch_end(RunContext& run, const Batch& b, int i) override {
    call(hooks_.on_predict_batch_end, run, b, i);
  }

 private:
  template <class F, class... A>
  static void call(const F& f, RunContext& run, A&... arguments) {
    if (f) f(run, arguments...);
  }

  LambdaHooks hooks_;
};

}  // namespace levin
