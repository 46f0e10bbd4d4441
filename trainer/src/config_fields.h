#pragma once
// One line a field of TrainerConfig: flags, environment, files and documentation come from here.

#include <levin/trainer/config.h>

#include <variant>

namespace levin {

/// Where a field lies, by its type.
using ConfigMember =
    std::variant<std::int64_t TrainerConfig::*, std::optional<std::int64_t> TrainerConfig::*,
                 std::optional<double> TrainerConfig::*, std::optional<Duration> TrainerConfig::*,
                 bool TrainerConfig::*, std::optional<bool> TrainerConfig::*, std::string TrainerConfig::*,
                 std::filesystem::path TrainerConfig::*, BatchLimit TrainerConfig::*, CheckInterval TrainerConfig::*,
                 DeviceList TrainerConfig::*, ProfilerChoice TrainerConfig::*, LoggerChoice TrainerConfig::*>;

struct ConfigField {
  const char* name;  ///< as in TrainerConfig
  ConfigMember member;
  const char* help;
  std::int64_t min = 0;                ///< of a whole number
  std::vector<std::string> choices{};  ///< of a text; empty for any
  bool counts = false;                 ///< a number for which the bare flag stands for 1
};

/// In the order of TrainerConfig; all its fields but those that only code can give (callbacks, loggers).
const std::vector<ConfigField>& config_fields();

}  // namespace levin
