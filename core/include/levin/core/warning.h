#pragma once
// Warnings: messages about calls that do not fail.

#include <functional>
#include <string>

namespace levin {

using WarningHandler = std::function<void(const std::string& text)>;

/// Where warnings go: "warning: ..." on standard error unless changed. Returns the former handler; an empty one
/// silences. May be called from any thread.
WarningHandler set_warning_handler(WarningHandler handler);
/// Sets the handler that is used until set_warning_handler is called.
void set_default_warning_handler(WarningHandler handler);
/// Hands one sentence to the handler.
void warn(const std::string& text);
/// The same, but each text only once a process.
void warn_once(const std::string& text);

}  // namespace levin
