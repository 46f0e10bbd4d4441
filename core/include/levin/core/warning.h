#pragma once
// Warnings: messages about calls that succeed.

#include <functional>
#include <string>

namespace levin {

/// Receives each warning, in the thread that gave it; several threads may call it at the same time.
using WarningHandler = std::function<void(const std::string& text)>;

/// Sets the function that receives warnings and returns the previous one. By default "warning: ..." is written to
/// standard error; an empty handler discards warnings. May be called from any thread.
WarningHandler set_warning_handler(WarningHandler handler);
/// Sets the handler that is used until set_warning_handler is called.
void set_default_warning_handler(WarningHandler handler);
/// Passes one sentence to the handler.
void warn(const std::string& text);
/// Warns as warn() does, but only once per process for each text.
void warn_once(const std::string& text);

}  // namespace levin
