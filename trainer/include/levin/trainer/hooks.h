// The hooks of Callback, one row each: name, parameters, arguments. Callback, LambdaHooks, LambdaCallback and the
// profilers' names come from it. This header has no include guard: define LEVIN_CALLBACK_HOOK and include it.

#ifndef LEVIN_CALLBACK_HOOK
#define LEVIN_CALLBACK_HOOK(name, parameters, arguments)
#endif
// Of every run, except that on_fit_* and on_sanity_check_* belong to fit. teardown is called after an exception too.
// on_save_checkpoint fills `state`, which on_load_checkpoint gets when a fit resumes.
LEVIN_CALLBACK_HOOK(setup, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(teardown, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_fit_start, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_fit_end, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_sanity_check_start, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_sanity_check_end, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_exception, (RunContext& run, const std::exception& error), (run, error))
LEVIN_CALLBACK_HOOK(on_save_checkpoint, (RunContext& run, StateMap& state), (run, state))
LEVIN_CALLBACK_HOOK(on_load_checkpoint, (RunContext& run, const StateMap& state), (run, state))

// Of training; `index` counts the batches of an epoch.
LEVIN_CALLBACK_HOOK(on_train_start, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_train_end, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_train_epoch_start, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_train_epoch_end, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_train_batch_start, (RunContext& run, const Batch& batch, int index), (run, batch, index))
LEVIN_CALLBACK_HOOK(on_train_batch_end, (RunContext& run, const StepOutput& output, const Batch& batch, int index),
                    (run, output, batch, index))
LEVIN_CALLBACK_HOOK(on_before_zero_grad, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_before_backward, (RunContext& run, const Tensor& loss), (run, loss))
LEVIN_CALLBACK_HOOK(on_after_backward, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_before_optimizer_step, (RunContext& run), (run))

// Of validations, in fit (also its sanity check) and by Trainer::validate; `index` counts the batches of a loader.
LEVIN_CALLBACK_HOOK(on_validation_start, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_validation_end, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_validation_epoch_start, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_validation_epoch_end, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_validation_batch_start, (RunContext& run, const Batch& batch, int index), (run, batch, index))
LEVIN_CALLBACK_HOOK(on_validation_batch_end, (RunContext& run, const Batch& batch, int index), (run, batch, index))

// Of Trainer::test.
LEVIN_CALLBACK_HOOK(on_test_start, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_test_end, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_test_epoch_start, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_test_epoch_end, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_test_batch_start, (RunContext& run, const Batch& batch, int index), (run, batch, index))
LEVIN_CALLBACK_HOOK(on_test_batch_end, (RunContext& run, const Batch& batch, int index), (run, batch, index))

// Of Trainer::predict.
LEVIN_CALLBACK_HOOK(on_predict_start, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_predict_end, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_predict_epoch_start, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_predict_epoch_end, (RunContext& run), (run))
LEVIN_CALLBACK_HOOK(on_predict_batch_start, (RunContext& run, const Batch& batch, int index), (run, batch, index))
LEVIN_CALLBACK_HOOK(on_predict_batch_end, (RunContext& run, const Batch& batch, int index), (run, batch, index))
#undef LEVIN_CALLBACK_HOOK

// Hooks that only LevinModule has; it also has most of the above, without RunContext.
#ifndef LEVIN_MODULE_HOOK
#define LEVIN_MODULE_HOOK(name)
#endif
LEVIN_MODULE_HOOK(on_before_batch_transfer)
LEVIN_MODULE_HOOK(on_after_batch_transfer)
LEVIN_MODULE_HOOK(on_validation_model_zero_grad)
LEVIN_MODULE_HOOK(on_validation_model_eval)
LEVIN_MODULE_HOOK(on_validation_model_train)
LEVIN_MODULE_HOOK(on_test_model_eval)
LEVIN_MODULE_HOOK(on_test_model_train)
LEVIN_MODULE_HOOK(on_predict_model_eval)
LEVIN_MODULE_HOOK(on_predict_model_train)
#undef LEVIN_MODULE_HOOK
