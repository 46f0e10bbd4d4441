#pragma once
// Options of a program, and the frame of its main function.

#include <levin/trainer/config.h>

#include <filesystem>
#include <functional>
#include <memory>

namespace levin {

/// Named options with one line of help each. Misuse throws UsageError with one sentence.
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
  CommandLine& add(const std::string& name, std::optional<std::int64_t>& value, const std::string& help,
                   std::int64_t min = 0);
  CommandLine& add(const std::string& name, std::optional<double>& value, const std::string& help);
  CommandLine& add_flag(const std::string& name, bool& value, const std::string& help);
  /// One of a few words.
  CommandLine& add_choice(const std::string& name, std::string& value, const std::vector<std::string>& choices,
                          const std::string& help);
  /// Every field of the configuration under its own name: --max-epochs, --precision, ...
  CommandLine& add_trainer(TrainerConfig& config);

  /// Reads the arguments; false after --help was printed to the standard output, when the program should end.
  bool parse(int argc, const char* const* argv);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Thrown by parse_flags after it printed --help; run_main ends with status 0.
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
