#pragma once
// Options of earlier Lightning versions, as found in older articles and programs.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace levin {

/// Returns a sentence that says what to use instead of option `name` (with underscores) and its value (empty for none);
/// nothing if there never was such an option.
std::optional<std::string> legacy_option(std::string_view name, const std::string& value);
/// The same for values of `accelerator` that were strategies, or devices without kernels in this library.
std::optional<std::string> legacy_accelerator(const std::string& value);
/// The same for values of `strategy`.
std::optional<std::string> legacy_strategy(const std::string& value);
/// Returns all names, for tests and documentation.
std::vector<std::string> legacy_option_names();

}  // namespace levin
