#pragma once
// Names of the actions that the loops report to a profiler; built only if a profiler is active.

#include <levin/trainer/callback.h>
#include <levin/trainer/module.h>
#include <levin/trainer/profilers/profiler.h>

#include <array>
#include <cstring>

namespace levin {

/// Returns for example "[LevinModule]Net.training_step".
inline auto action_of(const LevinModule& module, const char* what) {
  return [&module, what] { return "[LevinModule]" + module.type_name() + "." + what; };
}

/// Returns for example "ModelCheckpoint", without the library's namespace.
std::string short_type_name(const std::type_info& type);

/// Bytes of a pointer to a member function, used as a lookup key.
using HookKey = std::array<std::byte, sizeof(void (Callback::*)())>;
template <class F>
HookKey hook_key(F hook) {
  HookKey key{};
  static_assert(sizeof hook == sizeof key);
  std::memcpy(key.data(), &hook, sizeof hook);
  return key;
}
/// Returns for example "on_train_start".
const char* callback_hook_name(const HookKey& hook);
const char* module_hook_name(const HookKey& hook);

/// Returns for example "[Callback]ModelCheckpoint.on_train_start".
template <class... P>
auto action_of(const Callback& callback, void (Callback::*hook)(RunContext&, P...)) {
  return [&callback, hook] {
    return "[Callback]" + short_type_name(typeid(callback)) + "." + callback_hook_name(hook_key(hook));
  };
}
template <class R, class... Q>
auto action_of(const LevinModule& module, R (LevinModule::*hook)(Q...)) {
  return [&module, hook] { return "[LevinModule]" + module.type_name() + "." + module_hook_name(hook_key(hook)); };
}

}  // namespace levin
