#include <levin/trainer/callbacks/lambda_callback.h>

namespace levin {

namespace {
template <class F, class... A>
void call_hook(const F& f, RunContext& run, A&... arguments) {
  if (f) f(run, arguments...);
}
}  // namespace

LambdaCallback::LambdaCallback(LambdaHooks hooks) : hooks_(std::move(hooks)) {}

void LambdaCallback::setup(RunContext& run) { call_hook(hooks_.setup, run); }
void LambdaCallback::teardown(RunContext& run) { call_hook(hooks_.teardown, run); }
void LambdaCallback::on_fit_start(RunContext& run) { call_hook(hooks_.on_fit_start, run); }
void LambdaCallback::on_fit_end(RunContext& run) { call_hook(hooks_.on_fit_end, run); }
void LambdaCallback::on_sanity_check_start(RunContext& run) { call_hook(hooks_.on_sanity_check_start, run); }
void LambdaCallback::on_sanity_check_end(RunContext& run) { call_hook(hooks_.on_sanity_check_end, run); }
void LambdaCallback::on_exception(RunContext& run, const std::exception& e) { call_hook(hooks_.on_exception, run, e); }
void LambdaCallback::on_save_checkpoint(RunContext& run, StateMap& state) {
  call_hook(hooks_.on_save_checkpoint, run, state);
}
void LambdaCallback::on_load_checkpoint(RunContext& run, const StateMap& state) {
  call_hook(hooks_.on_load_checkpoint, run, state);
}
void LambdaCallback::on_train_start(RunContext& run) { call_hook(hooks_.on_train_start, run); }
void LambdaCallback::on_train_end(RunContext& run) { call_hook(hooks_.on_train_end, run); }
void LambdaCallback::on_train_epoch_start(RunContext& run) { call_hook(hooks_.on_train_epoch_start, run); }
void LambdaCallback::on_train_epoch_end(RunContext& run) { call_hook(hooks_.on_train_epoch_end, run); }
void LambdaCallback::on_train_batch_start(RunContext& run, const Batch& b, int i) {
  call_hook(hooks_.on_train_batch_start, run, b, i);
}
void LambdaCallback::on_train_batch_end(RunContext& run, const StepOutput& out, const Batch& b, int i) {
  call_hook(hooks_.on_train_batch_end, run, out, b, i);
}
void LambdaCallback::on_before_zero_grad(RunContext& run) { call_hook(hooks_.on_before_zero_grad, run); }
void LambdaCallback::on_before_backward(RunContext& run, const Tensor& loss) {
  call_hook(hooks_.on_before_backward, run, loss);
}
void LambdaCallback::on_after_backward(RunContext& run) { call_hook(hooks_.on_after_backward, run); }
void LambdaCallback::on_before_optimizer_step(RunContext& run) { call_hook(hooks_.on_before_optimizer_step, run); }
void LambdaCallback::on_validation_start(RunContext& run) { call_hook(hooks_.on_validation_start, run); }
void LambdaCallback::on_validation_end(RunContext& run) { call_hook(hooks_.on_validation_end, run); }
void LambdaCallback::on_validation_epoch_start(RunContext& run) { call_hook(hooks_.on_validation_epoch_start, run); }
void LambdaCallback::on_validation_epoch_end(RunContext& run) { call_hook(hooks_.on_validation_epoch_end, run); }
void LambdaCallback::on_validation_batch_start(RunContext& run, const Batch& b, int i) {
  call_hook(hooks_.on_validation_batch_start, run, b, i);
}
void LambdaCallback::on_validation_batch_end(RunContext& run, const Batch& b, int i) {
  call_hook(hooks_.on_validation_batch_end, run, b, i);
}
void LambdaCallback::on_test_start(RunContext& run) { call_hook(hooks_.on_test_start, run); }
void LambdaCallback::on_test_end(RunContext& run) { call_hook(hooks_.on_test_end, run); }
void LambdaCallback::on_test_epoch_start(RunContext& run) { call_hook(hooks_.on_test_epoch_start, run); }
void LambdaCallback::on_test_epoch_end(RunContext& run) { call_hook(hooks_.on_test_epoch_end, run); }
void LambdaCallback::on_test_batch_start(RunContext& run, const Batch& b, int i) {
  call_hook(hooks_.on_test_batch_start, run, b, i);
}
void LambdaCallback::on_test_batch_end(RunContext& run, const Batch& b, int i) {
  call_hook(hooks_.on_test_batch_end, run, b, i);
}
void LambdaCallback::on_predict_start(RunContext& run) { call_hook(hooks_.on_predict_start, run); }
void LambdaCallback::on_predict_end(RunContext& run) { call_hook(hooks_.on_predict_end, run); }
void LambdaCallback::on_predict_epoch_start(RunContext& run) { call_hook(hooks_.on_predict_epoch_start, run); }
void LambdaCallback::on_predict_epoch_end(RunContext& run) { call_hook(hooks_.on_predict_epoch_end, run); }
void LambdaCallback::on_predict_batch_start(RunContext& run, const Batch& b, int i) {
  call_hook(hooks_.on_predict_batch_start, run, b, i);
}
void LambdaCallback::on_predict_batch_end(RunContext& run, const Batch& b, int i) {
  call_hook(hooks_.on_predict_batch_end, run, b, i);
}

}  // namespace levin
