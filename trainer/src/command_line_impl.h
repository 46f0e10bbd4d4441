#pragma once
// What a command line knows: its options, and which were given.

#include <levin/trainer/command_line.h>

#include <algorithm>
#include <optional>

namespace levin {

struct CommandLine::Impl {
  struct Option {
    std::string name, type, help;
    std::function<void(const std::string& label, const std::string& text)> take;
    std::function<std::string()> show;  // the present value as a file has it; empty for none
    bool bare = false;                  // may stand without a value
    bool of_trainer = false;
    std::string first{};                                         // what show() was before parsing
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
    bool help = false;  // which was printed
    bool print = false;
    std::string file{};  // of --config
  };
  Asked read_flags(int argc, const char* const* argv);
  void read_environment();
  void read_file(const std::filesystem::path& file);
  void give(Option& option, const std::string& label, const std::string& text) {
    if (!option.given) option.given = {label, text};
  }
  /// `written` is how the unknown name was spelt, `dress` spells a known one likewise.
  [[noreturn]] void refuse_unknown(const std::string& written, const std::string& name, const std::string& value,
                                   const std::function<std::string(const std::string&)>& dress) const;
};

inline std::string replaced(std::string text, char from, char to) {
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

}  // namespace levin
