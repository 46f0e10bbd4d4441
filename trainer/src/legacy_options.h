#pragma once
// Spellings of other days, which older articles and programs use.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace levin {

/// What to write instead of option `name` (with underscores) and its value (empty for none), as a sentence; nothing for
/// a name that never was one.
std::optional<std::string> legacy_option(std::string_view name, const std::string& value);
/// The same for values of `accelerator` that were strategies, or devices that this library has no kernels for.
std::optional<std::string> legacy_accelerator(const std::string& value);
/// The same for values of `strategy`.
std::optional<std::string> legacy_strategy(const std::string& value);
/// All names, for tests and documentation.
std::vector<std::string> legacy_option_names();

}  // namespace levin
