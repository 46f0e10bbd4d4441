#include <cxxabi.h>

#include <cstdlib>
#include <map>
#include <memory>

#include "actions.h"

namespace levin {
namespace {

using Names = std::map<HookKey, const char*>;

const char* find(const Names& names, const HookKey& hook) {
  const auto found = names.find(hook);
  return found == names.end() ? "hook" : found->second;
}

}  // namespace

std::string short_type_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                         &std::free);
  std::string name = status == 0 ? text.get() : type.name();
  if (const auto at = name.rfind("::"); at != std::string::npos && name.back() != '>') name.erase(0, at + 2);
  return name;
}

// A test holds these lists against the declarations.
#define LEVIN_CALLBACK_HOOK(name) \
  { hook_key(&Callback::name), #name }
#define LEVIN_MODULE_HOOK(name) \
  { hook_key(&LevinModule::name), #name }

const char* callback_hook_name(const HookKey& hook) {
  static const Names names = {
      LEVIN_CALLBACK_HOOK(setup),
      LEVIN_CALLBACK_HOOK(teardown),
      LEVIN_CALLBACK_HOOK(on_fit_start),
      LEVIN_CALLBACK_HOOK(on_fit_end),
      LEVIN_CALLBACK_HOOK(on_sanity_check_start),
      LEVIN_CALLBACK_HOOK(on_sanity_check_end),
      LEVIN_CALLBACK_HOOK(on_exception),
      LEVIN_CALLBACK_HOOK(on_save_checkpoint),
      LEVIN_CALLBACK_HOOK(on_load_checkpoint),
      LEVIN_CALLBACK_HOOK(on_train_start),
      LEVIN_CALLBACK_HOOK(on_train_end),
      LEVIN_CALLBACK_HOOK(on_train_epoch_start),
      LEVIN_CALLBACK_HOOK(on_train_epoch_end),
      LEVIN_CALLBACK_HOOK(on_train_batch_start),
      LEVIN_CALLBACK_HOOK(on_train_batch_end),
      LEVIN_CALLBACK_HOOK(on_before_zero_grad),
      LEVIN_CALLBACK_HOOK(on_before_backward),
      LEVIN_CALLBACK_HOOK(on_after_backward),
      LEVIN_CALLBACK_HOOK(on_before_optimizer_step),
      LEVIN_CALLBACK_HOOK(on_validation_start),
      LEVIN_CALLBACK_HOOK(on_validation_end),
      LEVIN_CALLBACK_HOOK(on_validation_epoch_start),
      LEVIN_CALLBACK_HOOK(on_validation_epoch_end),
      LEVIN_CALLBACK_HOOK(on_validation_batch_start),
      LEVIN_CALLBACK_HOOK(on_validation_batch_end),
      LEVIN_CALLBACK_HOOK(on_test_start),
      LEVIN_CALLBACK_HOOK(on_test_end),
      LEVIN_CALLBACK_HOOK(on_test_epoch_start),
      LEVIN_CALLBACK_HOOK(on_test_epoch_end),
      LEVIN_CALLBACK_HOOK(on_test_batch_start),
      LEVIN_CALLBACK_HOOK(on_test_batch_end),
      LEVIN_CALLBACK_HOOK(on_predict_start),
      LEVIN_CALLBACK_HOOK(on_predict_end),
      LEVIN_CALLBACK_HOOK(on_predict_epoch_start),
      LEVIN_CALLBACK_HOOK(on_predict_epoch_end),
      LEVIN_CALLBACK_HOOK(on_predict_batch_start),
      LEVIN_CALLBACK_HOOK(on_predict_batch_end),
  };
  return find(names, hook);
}

const char* module_hook_name(const HookKey& hook) {
  static const Names names = {
      LEVIN_MODULE_HOOK(on_before_batch_transfer),
      LEVIN_MODULE_HOOK(on_after_batch_transfer),
      LEVIN_MODULE_HOOK(on_load_checkpoint),
      LEVIN_MODULE_HOOK(on_fit_start),
      LEVIN_MODULE_HOOK(on_train_start),
      LEVIN_MODULE_HOOK(on_train_epoch_start),
      LEVIN_MODULE_HOOK(on_train_batch_start),
      LEVIN_MODULE_HOOK(on_before_zero_grad),
      LEVIN_MODULE_HOOK(on_before_backward),
      LEVIN_MODULE_HOOK(on_after_backward),
      LEVIN_MODULE_HOOK(on_before_optimizer_step),
      LEVIN_MODULE_HOOK(on_train_batch_end),
      LEVIN_MODULE_HOOK(on_train_epoch_end),
      LEVIN_MODULE_HOOK(on_save_checkpoint),
      LEVIN_MODULE_HOOK(on_train_end),
      LEVIN_MODULE_HOOK(on_fit_end),
      LEVIN_MODULE_HOOK(on_validation_model_zero_grad),
      LEVIN_MODULE_HOOK(on_validation_model_eval),
      LEVIN_MODULE_HOOK(on_validation_model_train),
      LEVIN_MODULE_HOOK(on_validation_start),
      LEVIN_MODULE_HOOK(on_validation_epoch_start),
      LEVIN_MODULE_HOOK(on_validation_batch_start),
      LEVIN_MODULE_HOOK(on_validation_batch_end),
      LEVIN_MODULE_HOOK(on_validation_epoch_end),
      LEVIN_MODULE_HOOK(on_validation_end),
      LEVIN_MODULE_HOOK(on_test_model_eval),
      LEVIN_MODULE_HOOK(on_test_model_train),
      LEVIN_MODULE_HOOK(on_test_start),
      LEVIN_MODULE_HOOK(on_test_epoch_start),
      LEVIN_MODULE_HOOK(on_test_batch_start),
      LEVIN_MODULE_HOOK(on_test_batch_end),
      LEVIN_MODULE_HOOK(on_test_epoch_end),
      LEVIN_MODULE_HOOK(on_test_end),
      LEVIN_MODULE_HOOK(on_predict_model_eval),
      LEVIN_MODULE_HOOK(on_predict_model_train),
      LEVIN_MODULE_HOOK(on_predict_start),
      LEVIN_MODULE_HOOK(on_predict_epoch_start),
      LEVIN_MODULE_HOOK(on_predict_batch_start),
      LEVIN_MODULE_HOOK(on_predict_batch_end),
      LEVIN_MODULE_HOOK(on_predict_epoch_end),
      LEVIN_MODULE_HOOK(on_predict_end),
  };
  return find(names, hook);
}

}  // namespace levin
