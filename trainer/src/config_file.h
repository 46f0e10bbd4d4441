#pragma once
// Files of options.

#include <filesystem>
#include <string>
#include <vector>

namespace levin {

struct ConfigEntry {
  std::string section;  ///< empty at the top
  std::string key;
  std::string value;  ///< without its quotes
  std::string where;  ///< "run.toml:3"
};

/// Reads lines `key = value` (TOML, INI) or `key: value` (YAML), with sections `[name]` or `name:` above indented
/// lines, and comments behind # (and ; at a line's beginning). Values stand on one line; lists stay as they are
/// written. Throws IoError where the file cannot be read, UsageError with the line where it is nothing of that.
std::vector<ConfigEntry> read_config_file(const std::filesystem::path& file);

}  // namespace levin
