// Parsing and formatting of options by type.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <limits>

#include "src/config/command_line_impl.h"
#include "src/config/config_fields.h"

namespace levin {
namespace {

// Below, `label` says where the value was given: "--max-epochs", "LEVIN_TRAINER_MAX_EPOCHS", "run.toml:3: max_epochs".

template <class T>
T number(const std::string& label, const std::string& text, const char* kind) {
  T value{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end)
    throw UsageError(fmt::format("{} {}: give {}.", label, text, kind));
  return value;
}

std::int64_t whole_number(const std::string& label, const std::string& text, std::int64_t min) {
  const auto value = number<std::int64_t>(label, text, "a whole number");
  if (value < min) throw UsageError(fmt::format("{} {}: give a whole number of {} or more.", label, text, min));
  return value;
}

bool truth(const std::string& label, const std::string& text) {
  if (text.empty()) return true;  // the bare flag
  if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "0" || text == "no" || text == "off") return false;
  throw UsageError(fmt::format("{} {}: give true or false.", label, text));
}

std::string shown(const BatchLimit& limit) {
  if (limit.is_count()) return fmt::format("{}", limit.count());
  const std::string text = fmt::format("{}", limit.fraction());
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string shown(const CheckInterval& interval) {
  return interval.time() ? interval.time()->text() : shown(interval.batches());
}

std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return out + "\"";
}

}  // namespace

CommandLine& CommandLine::add(const std::string& name, std::string& value, const std::string& help) {
  impl_->add({.name = name,
              .type = "TEXT",
              .help = help,
              .take = [&value](const auto&, const auto& text) { value = text; },
              .show = [&value] { return in_quotes(value); }});
  return *this;
}

CommandLine& CommandLine::add_path(const std::string& name, std::string& value, const std::string& help) {
  add(name, value, help);
  impl_->options.back().type = "PATH";
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, std::int64_t& value, const std::string& help, std::int64_t min) {
  impl_->add({.name = name,
              .type = "INT",
              .help = help,
              .take = [&value, min](const auto& label, const auto& text) { value = whole_number(label, text, min); },
              .show = [&value] { return std::to_string(value); }});
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, int& value, const std::string& help, int min) {
  const auto take = [&value, min](const std::string& label, const std::string& text) {
    const std::int64_t number = whole_number(label, text, min);
    if (number > std::numeric_limits<int>::max())
      throw UsageError(fmt::format("{} {}: give a whole number of {} or less.", label, text,
                                   std::numeric_limits<int>::max()));
    value = static_cast<int>(number);
  };
  impl_->add(
      {.name = name, .type = "INT", .help = help, .take = take, .show = [&value] { return std::to_string(value); }});
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, float& value, const std::string& help) {
  impl_->add({.name = name,
              .type = "FLOAT",
              .help = help,
              .take = [&value](const auto& label, const auto& text) { value = number<float>(label, text, "a number"); },
              .show = [&value] { return fmt::format("{}", value); }});
  return *this;
}

CommandLine& CommandLine::add_enum(const std::string& name, void* value, const std::vector<std::string>& texts,
                                   const std::vector<std::int64_t>& numbers, const std::string& help,
                                   void (*set)(void*, std::int64_t), std::int64_t (*get)(const void*)) {
  const std::string list = fmt::format("{}", fmt::join(texts, "|"));
  const auto take = [=](const std::string& label, const std::string& text) {
    const auto found = std::ranges::find(texts, text);
    if (found == texts.end()) throw UsageError(fmt::format("{} {}: choose one of {}.", label, text, list));
    set(value, numbers[static_cast<std::size_t>(found - texts.begin())]);
  };
  const auto show = [=] {
    const auto found = std::ranges::find(numbers, get(value));
    return found == numbers.end() ? std::string() : in_quotes(texts[static_cast<std::size_t>(found - numbers.begin())]);
  };
  impl_->add({.name = name, .type = list, .help = help, .take = take, .show = show});
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, std::optional<std::int64_t>& value, const std::string& help,
                              std::int64_t min) {
  impl_->add({.name = name,
              .type = "INT",
              .help = help,
              .take = [&value, min](const auto& label, const auto& text) { value = whole_number(label, text, min); },
              .show = [&value] { return value ? std::to_string(*value) : std::string(); }});
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, double& value, const std::string& help) {
  impl_->add(
      {.name = name,
       .type = "FLOAT",
       .help = help,
       .take = [&value](const auto& label, const auto& text) { value = number<double>(label, text, "a number"); },
       .show = [&value] { return fmt::format("{}", value); }});
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, std::optional<double>& value, const std::string& help) {
  impl_->add(
      {.name = name,
       .type = "FLOAT",
       .help = help,
       .take = [&value](const auto& label, const auto& text) { value = number<double>(label, text, "a number"); },
       .show = [&value] { return value ? fmt::format("{}", *value) : std::string(); }});
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, BatchLimit& value, const std::string& help) {
  impl_->add({.name = name,
              .type = "N|FRACTION",
              .help = help,
              .take = [&value](const auto& label, const auto& text) { value = BatchLimit::parse(text, label); },
              .show = [&value] { return shown(value); }});
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, CheckInterval& value, const std::string& help) {
  impl_->add({.name = name,
              .type = "N|FRACTION|TIME",
              .help = help,
              .take = [&value](const auto& label, const auto& text) { value = CheckInterval::parse(text, label); },
              .show = [&value] { return shown(value); }});
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, std::optional<Duration>& value, const std::string& help) {
  impl_->add({.name = name,
              .type = "DD:HH:MM:SS",
              .help = help,
              .take = [&value](const auto& label, const auto& text) { value = Duration::parse(text, label); },
              .show = [&value] { return value ? value->text() : std::string(); }});
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, DeviceList& value, const std::string& help) {
  impl_->add({.name = name,
              .type = "N|LIST",
              .help = help,
              .take = [&value](const auto& label, const auto& text) { value = DeviceList::parse(text, label); },
              .show = [&value] { return in_quotes(value.text()); }});
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, ProfilerChoice& value, const std::string& help) {
  impl_->add({.name = name,
              .type = "NAME",
              .help = help,
              .take = [&value](const auto&, const auto& text) { value = text; },
              .show = [&value] { return in_quotes(value.name()); }});
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, LoggerChoice& value, const std::string& help) {
  impl_->add({.name = name,
              .type = "NAMES",
              .help = help,
              .take = [&value](const auto& label, const auto& text) { value = LoggerChoice::parse(text, label); },
              .show = [&value] { return in_quotes(value.text()); },
              .bare = true});
  return *this;
}

CommandLine& CommandLine::add_flag(const std::string& name, bool& value, const std::string& help) {
  impl_->add({.name = name,
              .type = "BOOL",
              .help = help,
              .take = [&value](const auto& label, const auto& text) { value = truth(label, text); },
              .show = [&value] { return value ? std::string("true") : std::string("false"); },
              .bare = true});
  return *this;
}

CommandLine& CommandLine::add_flag(const std::string& name, std::optional<bool>& value, const std::string& help) {
  impl_->add({.name = name,
              .type = "BOOL",
              .help = help,
              .take = [&value](const auto& label, const auto& text) { value = truth(label, text); },
              .show = [&value] { return !value   ? std::string()
                                        : *value ? std::string("true")
                                                 : std::string("false"); },
              .bare = true});
  return *this;
}

CommandLine& CommandLine::add_count(const std::string& name, std::int64_t& value, const std::string& help) {
  const auto take = [&value](const std::string& label, const std::string& text) {
    const bool word = text.empty() || text == "true" || text == "false";
    value = word ? std::int64_t{text != "false"} : whole_number(label, text, 0);
  };
  impl_->add({.name = name,
              .type = "INT",
              .help = help,
              .take = take,
              .show = [&value] { return std::to_string(value); },
              .bare = true});
  return *this;
}

CommandLine& CommandLine::add_choice(const std::string& name, std::string& value,
                                     const std::vector<std::string>& choices, const std::string& help) {
  const std::string list = fmt::format("{}", fmt::join(choices, "|"));
  const auto take = [&value, choices, list](const std::string& label, const std::string& text) {
    if (std::find(choices.begin(), choices.end(), text) == choices.end())
      throw UsageError(fmt::format("{} {}: choose one of {}.", label, text, list));
    value = text;
  };
  impl_->add({.name = name, .type = list, .help = help, .take = take, .show = [&value] { return in_quotes(value); }});
  return *this;
}

CommandLine& CommandLine::add_trainer(TrainerConfig& config, const std::vector<std::string>& except) {
  for (const ConfigField& f : config_fields()) {
    const std::string name = replaced(f.name, '_', '-');
    if (std::find(except.begin(), except.end(), f.name) != except.end()) continue;
    const auto add_member = [&](const auto& field) {
      auto& value = field(config);
      using T = std::remove_reference_t<decltype(value)>;
      if constexpr (std::same_as<T, bool> || std::same_as<T, std::optional<bool>>)
        add_flag(name, value, f.help);
      else if constexpr (std::same_as<T, std::int64_t>)
        f.counts ? add_count(name, value, f.help) : add(name, value, f.help, f.min);
      else if constexpr (std::same_as<T, std::optional<std::int64_t>>)
        add(name, value, f.help, f.min);
      else if constexpr (std::same_as<T, std::string>)
        f.is_path           ? add_path(name, value, f.help)
        : f.choices.empty() ? add(name, value, f.help)
                            : add_choice(name, value, f.choices, f.help);
      else
        add(name, value, f.help);
    };
    std::visit(add_member, f.member.field());
    impl_->options.back().of_trainer = true;
  }
  return *this;
}

}  // namespace levin
