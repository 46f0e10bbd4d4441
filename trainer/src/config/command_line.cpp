#include <levin/trainer/signals.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <unistd.h>
#include <iostream>

#include "src/config/command_line_impl.h"
#include "src/config/config_file.h"
#include "src/config/legacy_options.h"
#include "src/config/nearest_name.h"
#include "src/launch/spawn.h"

namespace levin {
namespace {

constexpr const char* kEnvironment = "LEVIN_TRAINER_";
constexpr const char* kPrecedence =
    "A flag takes precedence over the environment (LEVIN_TRAINER_MAX_EPOCHS=5 for --max-epochs 5; Trainer options "
    "only),\nthe environment over the file of --config (lines max_epochs = 5 or max_epochs: 5), the file over the "
    "defaults.";

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace


void CommandLine::Impl::refuse_unknown(const std::string& written, const std::string& name, const std::string& value,
                                       const std::function<std::string(const std::string&)>& dress) const {
  const std::string with_value = value.empty() ? written : written + " " + value;
  if (const auto instead = legacy_option(replaced(name, '-', '_'), value))
    throw UsageError(fmt::format("{}: {}", with_value, *instead));
  std::vector<std::string> names;
  for (const auto& o : options) names.push_back(o.name);
  const std::string nearest = nearest_name(name, names);
  throw UsageError(fmt::format("{}: this option is unknown. {}--help lists all.", written,
                               nearest.empty() ? "" : fmt::format("Did you mean {}? ", dress(nearest))));
}

CommandLine::Impl::Asked CommandLine::Impl::read_flags(int argc, const char* const* argv) {
  Asked asked;
  CLI::App app(description);
  app.allow_extras();
  app.set_help_flag("--help,-h", "Print this help and exit");
  app.footer(kPrecedence);
  app.add_option("--config", asked.file, "File of options: TOML, INI, or plain YAML")->type_name("FILE")->take_last();
  app.add_flag("--print-config", asked.print, "Print all options as such a file and exit");
  for (Option& o : options) {
    const auto take = [this, &o](const std::string& text) { give(o, "--" + o.name, text == "{}" ? "" : text); };
    auto* option = app.add_option_function<std::string>("--" + o.name, take, o.help);
    option->take_last()->type_name(o.bare ? fmt::format("{} [{}]", o.type, o.first.empty() ? "none" : o.first)
                                          : o.type);
    if (o.bare)
      option->expected(0, 1);
    else
      option->default_str(o.first.empty() ? "none" : o.first);
    if (o.of_trainer) option->group("Options of the Trainer");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    asked.help = true;
    return asked;
  } catch (const CLI::ArgumentMismatch& e) {
    throw UsageError(std::string(e.what()) + ". Give each option one value.");
  } catch (const CLI::ParseError& e) {
    throw UsageError(std::string(e.what()) + ". --help lists all options.");
  }
  if (const auto extra = app.remaining(); !extra.empty()) {
    const auto at = extra[0].find('=');
    const std::string written = extra[0].substr(0, at);
    std::string value = at == std::string::npos ? "" : extra[0].substr(at + 1);
    if (at == std::string::npos && extra.size() > 1 && extra[1].substr(0, 2) != "--") value = extra[1];
    refuse_unknown(written, written.substr(std::min(written.find_first_not_of('-'), written.size())), value,
                   [](const std::string& name) { return "--" + name; });
  }
  return asked;
}

void CommandLine::Impl::read_environment() {
  const std::string prefix = kEnvironment;
  if (std::none_of(options.begin(), options.end(), [](const auto& o) { return o.of_trainer; })) return;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!text.starts_with(prefix)) continue;
    const auto at = text.find('=');
    const std::string written = text.substr(0, at), value = text.substr(at + 1);
    const std::string name = replaced(lower(written.substr(prefix.size())), '_', '-');
    Option* const option = find(name);
    if (!option || !option->of_trainer)
      refuse_unknown(written, name, value, [&](const auto& n) { return prefix + upper(replaced(n, '-', '_')); });
    give(*option, written, value);
  }
}

void CommandLine::Impl::read_file(const std::string& file) {
  for (const ConfigEntry& e : read_config_file(file)) {
    const std::string label = e.where + ": " + e.key;
    if (!e.section.empty() && e.section != "trainer")
      throw UsageError(
          fmt::format("{}: section {}: the one section is trainer, for options of the Trainer.", e.where, e.section));
    const std::string name = replaced(e.key, '_', '-');
    Option* const option = find(name);
    if (!option || (!e.section.empty() && !option->of_trainer))
      refuse_unknown(label, name, e.value, [](const auto& n) { return replaced(n, '-', '_'); });
    give(*option, label, e.value);
  }
}

CommandLine::CommandLine(const std::string& description) : impl_(std::make_unique<Impl>()) {
  impl_->description = description;
}
CommandLine::~CommandLine() = default;

bool CommandLine::parse(int argc, const char* const* argv) {
  for (auto& o : impl_->options) o.given.reset();
  const auto asked = impl_->read_flags(argc, argv);
  if (asked.help) return false;
  impl_->read_environment();
  if (!asked.file.empty()) impl_->read_file(asked.file);
  for (const auto& o : impl_->options)
    if (o.given) o.take(o.given->first, o.given->second);
  if (asked.print) std::cout << config_text();
  return !asked.print;
}

std::vector<std::string> CommandLine::given() const {
  std::vector<std::string> names;
  for (const auto& o : impl_->options)
    if (o.given) names.push_back(o.name);
  return names;
}

bool CommandLine::is_of_trainer(const std::string& name) const {
  const auto* option = impl_->find(name);
  return option && option->of_trainer;
}

std::string CommandLine::config_text() const {
  std::string out;
  bool in_trainer = false;
  const auto write = [&](const Impl::Option& o) {
    const std::string name = replaced(o.name, '-', '_'), value = o.show();
    out += fmt::format("# {}\n{}{} ={}\n", o.help, value.empty() ? "# " : "", name, value.empty() ? "" : " " + value);
  };
  for (const auto& o : impl_->options)  // top-level options precede the sections
    if (!o.of_trainer) write(o);
  for (const auto& o : impl_->options) {
    if (!o.of_trainer) continue;
    if (!std::exchange(in_trainer, true)) out += "\n[trainer]\n";
    write(o);
  }
  return out;
}

std::string CommandLine::markdown() const {
  std::string out = "| flag | value | default | meaning |\n|---|---|---|---|\n";
  for (const auto& o : impl_->options) {
    std::string type = o.type;
    for (std::size_t at = 0; (at = type.find('|', at)) != std::string::npos; at += 2) type.insert(at, "\\");
    out += fmt::format("| `--{}` | {} | {} | {} |\n", o.name, type, o.first.empty() ? "none" : "`" + o.first + "`",
                       o.help);
  }
  return out;
}

TrainerConfig parse_flags(int argc, const char* const* argv, TrainerConfig config) {
  CommandLine line("Options of the Trainer");
  line.add_trainer(config);
  if (!line.parse(argc, argv)) throw HelpShown();
  return config;
}

int run_main(const std::function<int()>& body) {
  const auto complain = [](const char* text, int status) {
    std::cout.flush();
    std::cerr << "error: " << text << std::endl;
    return status;
  };
  try {
    return body();
  } catch (const HelpShown&) {
    return 0;
  } catch (const SpawnDone&) {
    return 0;
  } catch (const UsageError& e) {
    return complain(e.what(), 2);
  } catch (const Interrupted& e) {
    return complain(e.what(), 128 + e.signal());
  } catch (const std::exception& e) {
    return complain(e.what(), 1);
  }
}

}  // namespace levin
