#include <cxxabi.h>

#include <cstdlib>
#include <map>
#include <memory>

#include "src/profilers/actions.h"

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

const char* callback_hook_name(const HookKey& hook) {
  static const Names names = {
#define LEVIN_CALLBACK_HOOK(name, ...) {hook_key(&Callback::name), #name},
#include <levin/trainer/hooks.h>
  };
  return find(names, hook);
}

namespace {

/// Adds the hook where LevinModule has it too.
#define LEVIN_CALLBACK_HOOK(name, ...)                                                        \
  template <class Module>                                                                     \
  void add_##name(Names& names) {                                                             \
    if constexpr (requires { hook_key(&Module::name); }) names[hook_key(&Module::name)] = #name; \
  }
#include <levin/trainer/hooks.h>

Names module_hooks() {
  Names names;
#define LEVIN_CALLBACK_HOOK(name, ...) add_##name<LevinModule>(names);
#define LEVIN_MODULE_HOOK(name) names[hook_key(&LevinModule::name)] = #name;
#include <levin/trainer/hooks.h>
  return names;
}

}  // namespace

const char* module_hook_name(const HookKey& hook) {
  static const Names names = module_hooks();
  return find(names, hook);
}

}  // namespace levin
