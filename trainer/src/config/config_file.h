#pragma once
// Reads option files.

#include <string>
#include <vector>

namespace levin {

struct ConfigEntry {
  std::string section;  ///< empty at the top level
  std::string key;
  std::string value;  ///< without quotes
  std::string where;  ///< location, as "run.toml:3"
};

/// Reads lines `key = value` (TOML, INI) or `key: value` (YAML), with sections `[name]` or `name:` above indented
/// lines, and comments after # (or ; at the start of a line). A value is on one line; lists are kept as text. Throws
/// IoError if the file cannot be read, and UsageError with the line if it has none of these forms.
std::vector<ConfigEntry> read_config_file(const std::string& file);

}  // namespace levin
