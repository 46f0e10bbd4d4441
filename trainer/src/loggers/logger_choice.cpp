// Creates loggers by name.
#include <levin/trainer/loggers/html_report.h>
#include <levin/trainer/loggers/json_lines_logger.h>
#include <levin/trainer/loggers/logger.h>
#include <levin/trainer/loggers/tensorboard_logger.h>

#include <levin/core/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace levin {
namespace {

using LoggerRoot = const std::filesystem::path&;

struct NamedLogger {
  const char* name;
  std::shared_ptr<Logger> (*make)(LoggerRoot);
};

std::shared_ptr<Logger> make_csv(LoggerRoot root) { return std::make_shared<CSVLogger>(root / "metrics.csv"); }

std::shared_ptr<Logger> make_tensorboard(LoggerRoot root) {
  return std::make_shared<TensorBoardLogger>(
      TensorBoardOptions{.folder = {.save_dir = root, .name = "tensorboard", .version = {}}});
}

std::shared_ptr<Logger> make_jsonl(LoggerRoot root) {
  return std::make_shared<JsonLinesLogger>(root / "metrics.jsonl");
}

/// Uses the folder's name as title.
std::shared_ptr<Logger> make_html(LoggerRoot root) {
  HtmlReportOptions options{.file = root / "report.html"};
  const auto folder = std::filesystem::absolute(root).lexically_normal();
  const auto name = (folder.has_filename() ? folder : folder.parent_path()).filename().string();
  if (!name.empty()) options.title = name;
  return std::make_shared<HtmlReport>(std::move(options));
}

constexpr std::array<NamedLogger, 4> kNamedLoggers = {
    {{"csv", make_csv}, {"tensorboard", make_tensorboard}, {"jsonl", make_jsonl}, {"html", make_html}}};

/// Returns the comma-separated parts without brackets, quotes and spaces.
std::vector<std::string> listed_names(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '"' || c == '\'' || c == '[' || c == ']'; });
  std::vector<std::string> out(1);
  for (const char c : text) {
    if (c == ',')
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

bool one_of(const std::string& text, std::initializer_list<const char*> words) {
  return std::ranges::find(words, text) != words.end();
}

}  // namespace

LoggerChoice::LoggerChoice(bool on) {
  if (on) names_.emplace_back("csv");
}

LoggerChoice LoggerChoice::parse(const std::string& text, const std::string& option) {
  if (one_of(text, {"", "true", "1", "yes", "on"})) return true;
  if (one_of(text, {"none", "false", "0", "no", "off"})) return false;
  LoggerChoice out(false);
  for (const std::string& name : listed_names(text)) {
    if (std::ranges::find(kNamedLoggers, name, &NamedLogger::name) == kNamedLoggers.end())
      throw UsageError(
          fmt::format("{} {}: there is no logger \"{}\". Give csv, tensorboard, jsonl or html, several separated by "
                      "commas, or none.",
                      option, text, name));
    if (!out.has(name)) out.names_.push_back(name);
  }
  return out;
}

bool LoggerChoice::has(const std::string& name) const { return std::ranges::find(names_, name) != names_.end(); }

std::string LoggerChoice::text() const { return names_.empty() ? "none" : fmt::format("{}", fmt::join(names_, ",")); }

std::vector<std::shared_ptr<Logger>> make_loggers(const LoggerChoice& choice, const std::string& root) {
  std::vector<std::shared_ptr<Logger>> out;
  for (const std::string& name : choice.names())
    out.push_back(std::ranges::find(kNamedLoggers, name, &NamedLogger::name)->make(root));
  return out;
}

}  // namespace levin
