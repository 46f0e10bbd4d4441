#pragma once
// Log lines for the user, through spdlog's default logger. Sources include this header instead of spdlog, whose
// templates would compile fmt's formatting again in each of them.

#include <fmt/format.h>

#include <string>

namespace levin::logging {

enum class Level { debug, info, warn };

void write(Level level, const std::string& text);

template <class... T>
void debug(fmt::format_string<T...> format, T&&... arguments) {
  write(Level::debug, fmt::vformat(format, fmt::make_format_args(arguments...)));
}
template <class... T>
void info(fmt::format_string<T...> format, T&&... arguments) {
  write(Level::info, fmt::vformat(format, fmt::make_format_args(arguments...)));
}
template <class... T>
void warn(fmt::format_string<T...> format, T&&... arguments) {
  write(Level::warn, fmt::vformat(format, fmt::make_format_args(arguments...)));
}

/// Suppresses everything below errors from now on.
void only_errors();

}  // namespace levin::logging
