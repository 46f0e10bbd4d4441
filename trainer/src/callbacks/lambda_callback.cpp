#include <levin/trainer/callbacks/lambda_callback.h>

namespace levin {

LambdaCallback::LambdaCallback(LambdaHooks hooks) : hooks_(std::move(hooks)) {}

#define LEVIN_CALLBACK_HOOK(name, parameters, arguments) \
  void LambdaCallback::name parameters {                 \
    if (hooks_.name) hooks_.name arguments;              \
  }
#include <levin/trainer/hooks.h>

}  // namespace levin
