#pragma once
// State of a command line: its options and the values given.

#include <levin/trainer/config/command_line.h>

#include <algorithm>
#include <optional>

namespace levin {

struct CommandLine::Impl {
  struct Option {
    std::string name, type, help;
    std::function<void(const std::string& label, const std::string& text)> take;
    std::function<std::string()> show;  // current value in file syntax; empty for none
    bool bare = false;                  // may be given without a value
    bool of_trainer = false;
    std::string first{};                                         // result of show() before parsing
    std::optional<std::pair<std::string, std::string>> given{};  // label and text
  };
  std::string description;
  std::vector<Option> options;

  void add(Option option) {
    option.first = option.show();
    options.push_back(std::move(option));
  }
  Option* find(const std::string& name) {
    const auto it = std::find_if(options.begin(), options.end(), [&](const auto& o) { return o.name == name; });
    return it == options.end() ? nullptr : &*it;
  }
  struct Asked {
    bool help = false;  // --help was printed
    bool print = false;
    std::string file{};  // value of --config
  };
  Asked read_flags(int argc, const char* const* argv);
  void read_environment();
  void read_file(const std::string& file);
  void give(Option& option, const std::string& label, const std::string& text) {
    if (!option.given) option.given = {label, text};
  }
  /// Throws UsageError for an unknown name; `written` is its spelling, and `dress` formats a suggestion in the same
  /// way.
  [[noreturn]] void refuse_unknown(const std::string& written, const std::string& name, const std::string& value,
                                   const std::function<std::string(const std::string&)>& dress) const;
};

inline std::string replaced(std::string text, char from, char to) {
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

}  // namespace levin
