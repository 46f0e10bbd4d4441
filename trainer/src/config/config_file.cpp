#include "src/config/config_file.h"

#include <levin/core/error.h>
#include <levin/core/io.h>

#include <fmt/format.h>

#include <sstream>

namespace levin {
namespace {

constexpr const char* kBlank = " \t\r";

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// Returns the line up to a # outside of quotes.
std::string without_comment(const std::string& line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == '"' && c == '\\')
      ++i;
    else if (quote != 0)
      quote = c == quote ? '\0' : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t'))
      return line.substr(0, i);
  }
  return line;
}

/// Removes quotes. Double quotes support the escapes \" and \\, single quotes none.
std::string unquoted(const std::string& text, const std::string& where) {
  if (text.empty() || (text.front() != '"' && text.front() != '\'')) return text;
  const char quote = text.front();
  std::string out;
  std::size_t i = 1;
  for (; i < text.size() && text[i] != quote; ++i) {
    if (quote == '"' && text[i] == '\\' && i + 1 < text.size()) ++i;
    out += text[i];
  }
  if (i + 1 != text.size()) throw UsageError(fmt::format("{}: {}: close the quotes at the value's end.", where, text));
  return out;
}

}  // namespace

std::vector<ConfigEntry> read_config_file(const std::string& file) {
  std::istringstream in(io::read_text(file));
  std::vector<ConfigEntry> entries;
  std::string section;
  bool indented_section = false;  // a YAML section, which ends with its indentation
  int number = 0;
  for (std::string raw; std::getline(in, raw);) {
    const std::string where = fmt::format("{}:{}", file, ++number);
    const bool indented = !raw.empty() && (raw[0] == ' ' || raw[0] == '\t');
    const std::string line = trimmed(without_comment(raw));
    if (line.empty() || line[0] == ';' || line == "---") continue;
    if (indented_section && !indented) section.clear(), indented_section = false;
    if (line.front() == '[' && line.back() == ']') {
      section = trimmed(line.substr(1, line.size() - 2));
      continue;
    }
    const auto at = line.find_first_of("=:");
    const std::string key = at == std::string::npos ? std::string() : trimmed(line.substr(0, at));
    if (key.empty() || key.find_first_of(" \t\"'[]{}") != std::string::npos)
      throw UsageError(fmt::format("{}: {}: write one \"name = value\" or \"name: value\" per line.", where, line));
    const std::string value = trimmed(line.substr(at + 1));
    if (value.empty() && line[at] == ':') {
      section = key;
      indented_section = true;
      continue;
    }
    entries.push_back({section, key, unquoted(value, where), where});
  }
  return entries;
}

}  // namespace levin
