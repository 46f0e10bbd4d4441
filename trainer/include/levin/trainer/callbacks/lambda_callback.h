#pragma once
// A callback made of functions, for code that is too small for a class.

#include <levin/trainer/callback.h>
#include <levin/trainer/module.h>

#include <functional>

namespace levin {

/// One function for each hook of Callback, under the hook's name. Empty functions do nothing.
struct LambdaHooks {
#define LEVIN_CALLBACK_HOOK(name, parameters, arguments) std::function<void parameters> name{};
#include <levin/trainer/hooks.h>
};

/// Calls a function in each hook: `config.callbacks = {LambdaCallback({.on_train_end = [](RunContext& run) { ... }})};`
class LambdaCallback : public Callback {
 public:
  /// Takes the functions; they must not refer to what may be destroyed before the run ends.
  explicit LambdaCallback(LambdaHooks hooks);

#define LEVIN_CALLBACK_HOOK(name, parameters, arguments) void name parameters override;
#include <levin/trainer/hooks.h>

 private:
  LambdaHooks hooks_;
};

}  // namespace levin
