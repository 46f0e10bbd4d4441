#pragma once
// Command-line options, and a wrapper for a program's main function.

#include <levin/core/owned_ptr.h>
#include <levin/trainer/config/config.h>

#include <functional>
#include <string>
#include <type_traits>
#include <utility>

namespace levin {

/// Named options with one line of help each. If an option is set in several places, a flag takes precedence over the
/// environment (LEVIN_TRAINER_MAX_EPOCHS=5; Trainer options only), the environment over the --config file, and the file
/// over the default. Misuse throws UsageError with one sentence that names the option, the value given, and the values
/// allowed.
class CommandLine {
 public:
  /// The description begins the text of --help.
  explicit CommandLine(const std::string& description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Adds the option --<name>, whose text parse() converts to `value`; its present value is the default. `value` must
  /// outlive this object. Integers below `min` are refused.
  CommandLine& add(const std::string& name, std::string& value, const std::string& help);
  CommandLine& add(const std::string& name, std::int64_t& value, const std::string& help, std::int64_t min = 0);
  CommandLine& add(const std::string& name, int& value, const std::string& help, int min = 0);
  CommandLine& add(const std::string& name, double& value, const std::string& help);
  CommandLine& add(const std::string& name, float& value, const std::string& help);
  CommandLine& add(const std::string& name, bool& value, const std::string& help) {
    return add_flag(name, value, help);
  }
  /// Adds an enumeration by the names of its values: add("mode", mode, {{"min", Mode::min}, {"max", Mode::max}}, help).
  template <class Enum>
    requires std::is_enum_v<Enum>
  CommandLine& add(const std::string& name, Enum& value, const std::vector<std::pair<std::string, Enum>>& names,
                   const std::string& help) {
    std::vector<std::string> texts;
    std::vector<std::int64_t> numbers;
    for (const auto& [text, named] : names) {
      texts.push_back(text);
      numbers.push_back(static_cast<std::int64_t>(named));
    }
    return add_enum(
        name, &value, texts, numbers, help, [](void* to, std::int64_t v) { *static_cast<Enum*>(to) = Enum(v); },
        [](const void* from) { return static_cast<std::int64_t>(*static_cast<const Enum*>(from)); });
  }
  /// As above for the types of TrainerConfig, in the forms that they accept as text, and for values that may be absent.
  CommandLine& add(const std::string& name, BatchLimit& value, const std::string& help);
  CommandLine& add(const std::string& name, CheckInterval& value, const std::string& help);
  CommandLine& add(const std::string& name, DeviceList& value, const std::string& help);
  CommandLine& add(const std::string& name, std::optional<Duration>& value, const std::string& help);
  CommandLine& add(const std::string& name, ProfilerChoice& value, const std::string& help);
  CommandLine& add(const std::string& name, LoggerChoice& value, const std::string& help);
  CommandLine& add(const std::string& name, std::optional<std::int64_t>& value, const std::string& help,
                   std::int64_t min = 0);
  CommandLine& add(const std::string& name, std::optional<double>& value, const std::string& help);
  /// Adds a truth value: the bare flag and "true", "1", "yes" and "on" mean true; "false", "0", "no" and "off" false.
  CommandLine& add_flag(const std::string& name, bool& value, const std::string& help);
  CommandLine& add_flag(const std::string& name, std::optional<bool>& value, const std::string& help);
  /// Adds a number for which the bare flag and "true" mean 1, "false" means 0.
  CommandLine& add_count(const std::string& name, std::int64_t& value, const std::string& help);
  /// Adds the name of a file or folder; --help shows PATH as its value.
  CommandLine& add_path(const std::string& name, std::string& value, const std::string& help);
  /// Adds an option with a fixed set of values.
  CommandLine& add_choice(const std::string& name, std::string& value, const std::vector<std::string>& choices,
                          const std::string& help);
  /// Adds every field of the configuration under its own name (--max-epochs, --precision, ...), except those in
  /// `except`, which the program uses itself or does not need.
  CommandLine& add_trainer(TrainerConfig& config, const std::vector<std::string>& except = {});

  /// Reads the arguments, the environment and the --config file into the values. Returns false if --help or
  /// --print-config was printed to standard output, after which the program should exit.
  bool parse(int argc, const char* const* argv);

  /// Names (such as max-epochs) of the options that were set explicitly.
  std::vector<std::string> given() const;
  /// True for an option that add_trainer() added.
  bool is_of_trainer(const std::string& name) const;

  /// Returns all options with their current values, in the format of --config files.
  std::string config_text() const;
  /// Returns all options as a Markdown table: flag, value, default, meaning.
  std::string markdown() const;

 private:
  CommandLine& add_enum(const std::string& name, void* value, const std::vector<std::string>& texts,
                        const std::vector<std::int64_t>& numbers, const std::string& help,
                        void (*set)(void* value, std::int64_t number), std::int64_t (*get)(const void* value));
  struct Impl;
  OwnedPtr<Impl> impl_;
};

/// Thrown by parse_flags after it printed --help or --print-config; run_main returns 0 for it.
class HelpShown : public Error {
 public:
  HelpShown() : Error("help was shown") {}
};

/// Returns the configuration as changed by the command line: every field is a flag of the program.
TrainerConfig parse_flags(int argc, const char* const* argv, TrainerConfig config);

/// Runs a program's body and returns its exit status: the value that `body` returns, 2 for UsageError, 128 + signal for
/// Interrupted, and 1 for any other exception, each with one line "error: ..." on standard error.
int run_main(const std::function<int()>& body);

}  // namespace levin
