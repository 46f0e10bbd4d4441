#include <levin/core/warning.h>

#include <cstdio>
#include <mutex>
#include <set>
#include <utility>

namespace levin {

namespace {

struct Warnings {
  std::mutex mutex;
  WarningHandler handler = [](const std::string& text) { std::fprintf(stderr, "warning: %s\n", text.c_str()); };
  bool is_default = true;
  std::set<std::string> said;
};

Warnings& warnings() {
  static Warnings& all = *new Warnings;  // never destroyed: threads may outlive main
  return all;
}

}  // namespace

WarningHandler set_warning_handler(WarningHandler handler) {
  const std::lock_guard lock(warnings().mutex);
  warnings().is_default = false;
  return std::exchange(warnings().handler, std::move(handler));
}

void set_default_warning_handler(WarningHandler handler) {
  const std::lock_guard lock(warnings().mutex);
  if (warnings().is_default) warnings().handler = std::move(handler);
}

void warn(const std::string& text) {
  WarningHandler handler;
  {
    const std::lock_guard lock(warnings().mutex);
    handler = warnings().handler;
  }
  if (handler) handler(text);
}

void warn_once(const std::string& text) {
  {
    const std::lock_guard lock(warnings().mutex);
    if (!warnings().said.insert(text).second) return;
  }
  warn(text);
}

}  // namespace levin
