#pragma once
// One row per field of TrainerConfig, from which flags, environment variables, files and documentation are generated.

#include <levin/trainer/config/config.h>

#include <functional>
#include <variant>

namespace levin {

/// Reference to a field of type T of a configuration.
template <class T>
using FieldOf = std::function<T&(TrainerConfig&)>;

/// A field of TrainerConfig, or of the options of one strategy in it.
class ConfigMember {
 public:
  using Field =
      std::variant<FieldOf<std::int64_t>, FieldOf<std::optional<std::int64_t>>, FieldOf<std::optional<double>>,
                   FieldOf<std::optional<Duration>>, FieldOf<bool>, FieldOf<std::optional<bool>>, FieldOf<std::string>,
                   FieldOf<BatchLimit>, FieldOf<CheckInterval>, FieldOf<DeviceList>, FieldOf<ProfilerChoice>,
                   FieldOf<LoggerChoice>>;

  template <class T>
  ConfigMember(T TrainerConfig::* member)  // NOLINT: implicit, so that a row reads as one
      : field_(FieldOf<T>([member](TrainerConfig& c) -> T& { return c.*member; })) {}
  template <class Options, class T>
  ConfigMember(Options TrainerConfig::* options, T Options::* member)
      : field_(FieldOf<T>([options, member](TrainerConfig& c) -> T& { return c.*options.*member; })) {}
  const Field& field() const { return field_; }

 private:
  Field field_;
};

struct ConfigField {
  const char* name;  ///< of the flag and of the key in files
  ConfigMember member;
  const char* help;
  std::int64_t min = 0;                ///< lower bound of an integer
  std::vector<std::string> choices{};  ///< allowed values of a text; empty for any
  bool counts = false;                 ///< the bare flag means 1
  bool is_path = false;                ///< the text names a file or folder
};

/// All fields that can be given as text, in the order of TrainerConfig; excludes callbacks and loggers.
const std::vector<ConfigField>& config_fields();

}  // namespace levin
