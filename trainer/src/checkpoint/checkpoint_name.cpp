#include "src/checkpoint/checkpoint_name.h"

#include <fmt/format.h>

namespace levin {
namespace {

bool is_count(const std::string& field) { return field == "epoch" || field == "step"; }

/// Formats integers as Python does: a floating-point format type converts them first.
template <class T>
std::string shown(T value, const std::string& spec) {
  const std::string format = "{:" + spec + "}";
  if (!spec.empty() && std::string("fFeEgG").find(spec.back()) != std::string::npos) {
    const double real = static_cast<double>(value);
    return fmt::vformat(format, fmt::make_format_args(real));
  }
  return fmt::vformat(format, fmt::make_format_args(value));
}

std::string shown(const std::string& field, double metric, std::int64_t count, const std::string& spec) {
  return is_count(field) ? shown(count, spec) : shown(metric, spec.empty() ? ".4f" : spec);
}

}  // namespace

NameTemplate::NameTemplate(const std::string& pattern, bool auto_insert)
    : pattern_(pattern.empty() ? "{epoch}-{step}" : pattern), auto_insert_(auto_insert) {
  const auto refuse = [&](const std::string& why) {
    throw UsageError(fmt::format(
        "[ModelCheckpoint] filename \"{}\": {}. Write e.g. \"{{epoch:02d}}-{{val_loss:.2f}}\".", pattern_, why));
  };
  for (std::size_t at = 0; at < pattern_.size();) {
    const auto open = pattern_.find('{', at);
    Part part{pattern_.substr(at, open - at)};
    if (part.literal.find('/') != std::string::npos) refuse("it names one folder; what is above it belongs in dirpath");
    if (part.literal.find('}') != std::string::npos) refuse("a brace is closed that was not opened");
    if (open == std::string::npos) {
      parts_.push_back(std::move(part));
      break;
    }
    const auto close = pattern_.find('}', open);
    if (close == std::string::npos) refuse("a brace is not closed");
    const std::string inside = pattern_.substr(open + 1, close - open - 1);
    const auto colon = inside.find(':');
    part.field = inside.substr(0, colon);
    if (colon != std::string::npos) part.spec = inside.substr(colon + 1);
    if (part.field.empty()) refuse("a field has no name");
    try {
      (void)shown(part.field, 1.5, 1, part.spec);
    } catch (const fmt::format_error& e) {
      refuse(fmt::format("{{{}}} is not a number format ({})", inside, e.what()));
    }
    parts_.push_back(std::move(part));
    at = close + 1;
  }
  if (pattern_ == "best" || pattern_ == "last") refuse("this is the name of a pointer");
}

std::string NameTemplate::operator()(const RunContext& run) const {
  std::string out;
  for (const Part& part : parts_) {
    out += part.literal;
    if (part.field.empty()) continue;
    if (auto_insert_)
      for (const char c : part.field + "=") out += c == '/' ? '_' : c;  // val/loss is one name, not two folders
    const double metric = is_count(part.field) ? 0 : run.metrics.find(part.field).value_or(0);
    out += shown(part.field, metric, part.field == "epoch" ? run.state.epoch : run.state.global_step, part.spec);
  }
  return out;
}

}  // namespace levin
