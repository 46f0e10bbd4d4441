#pragma once
// What the library has to say without failing.

#include <functional>
#include <string>

namespace levin {

using WarningHandler = std::function<void(const std::string& text)>;

/// Where warnings go: "warning: ..." on standard error unless changed. Returns the former handler; an empty one
/// silences. May be called from any thread.
WarningHandler set_warning_handler(WarningHandler handler);
/// What is used as long as nobody has called set_warning_handler.
void set_default_warning_handler(WarningHandler handler);
/// Hands one sentence to the handler.
void warn(const std::string& text);
/// The same, but each text only once a process.
void warn_once(const std::string& text);

}  // namespace levin
