#pragma once
// Options of a program, and the frame of its main function.

#include <levin/core/owned_ptr.h>
#include <levin/trainer/config.h>

#include <filesystem>
#include <functional>

namespace levin {

/// Named options with one line of help each. Where several say the value of one, a flag wins over the environment
/// (LEVIN_TRAINER_MAX_EPOCHS=5; options of the Trainer alone), that over the file of --config, that over the default.
/// Misuse throws UsageError with one sentence that names the option, what was given, and what may be given.
class CommandLine {
 public:
  explicit CommandLine(const std::string& description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  CommandLine& add(const std::string& name, std::string& value, const std::string& help);
  CommandLine& add(const std::string& name, std::filesystem::path& value, const std::string& help);
  CommandLine& add(const std::string& name, std::int64_t& value, const std::string& help, std::int64_t min = 0);
  CommandLine& add(const std::string& name, double& value, const std::string& help);
  CommandLine& add(const std::string& name, BatchLimit& value, const std::string& help);
  CommandLine& add(const std::string& name, CheckInterval& value, const std::string& help);
  CommandLine& add(const std::string& name, DeviceList& value, const std::string& help);
  CommandLine& add(const std::string& name, std::optional<Duration>& value, const std::string& help);
  CommandLine& add(const std::string& name, ProfilerChoice& value, const std::string& help);
  CommandLine& add(const std::string& name, LoggerChoice& value, const std::string& help);
  CommandLine& add(const std::string& name, std::optional<std::int64_t>& value, const std::string& help,
                   std::int64_t min = 0);
  CommandLine& add(const std::string& name, std::optional<double>& value, const std::string& help);
  CommandLine& add_flag(const std::string& name, bool& value, const std::string& help);
  CommandLine& add_flag(const std::string& name, std::optional<bool>& value, const std::string& help);
  /// A number for which the bare flag and "true" stand for 1, "false" for 0.
  CommandLine& add_count(const std::string& name, std::int64_t& value, const std::string& help);
  /// One of a few words.
  CommandLine& add_choice(const std::string& name, std::string& value, const std::vector<std::string>& choices,
                          const std::string& help);
  /// Every field of the configuration under its own name (--max-epochs, --precision, ...), but for `except`, whose
  /// names the program takes for itself or has no use for.
  CommandLine& add_trainer(TrainerConfig& config, const std::vector<std::string>& except = {});

  /// Reads the arguments, the environment and the file of --config; false after --help or --print-config printed to
  /// the standard output, when the program should end.
  bool parse(int argc, const char* const* argv);

  /// Names (max-epochs) of the options that parse found somewhere.
  std::vector<std::string> given() const;
  bool is_of_trainer(const std::string& name) const;

  /// All options with their present values, as a file that --config reads.
  std::string config_text() const;
  /// All options as a table for documentation: flag, value, default, meaning.
  std::string markdown() const;

 private:
  struct Impl;
  OwnedPtr<Impl> impl_;
};

/// Thrown by parse_flags after it printed --help or --print-config; run_main ends with status 0.
class HelpShown : public Error {
 public:
  HelpShown() : Error("help was shown") {}
};

/// The configuration with what the command line says instead: every field is a flag of the program.
TrainerConfig parse_flags(int argc, const char* const* argv, TrainerConfig config);

/// Runs a program's body and turns its end into an exit status: what it returns; 2 for UsageError, 128 + signal for
/// Interrupted, 1 for any other exception, each with one line "error: ..." on the standard error output.
int run_main(const std::function<int()>& body);

}  // namespace levin
