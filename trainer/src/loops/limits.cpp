#include <levin/trainer/config/limits.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace levin {

BatchLimit BatchLimit::parse(std::string_view text, const std::string& option) {
  const char* end = text.data() + text.size();
  std::int64_t count = 0;
  const auto whole = std::from_chars(text.data(), end, count);
  if (whole.ec == std::errc() && whole.ptr == end) {
    const BatchLimit limit(count);
    limit.check(option.c_str());
    return limit;
  }
  double fraction = 0;
  const auto real = std::from_chars(text.data(), end, fraction);
  if (real.ec != std::errc() || real.ptr != end)
    throw UsageError(
        fmt::format("{} {}: give a number of batches such as 20, or a fraction such as 0.25.", option, text));
  const BatchLimit limit(fraction);
  limit.check(option.c_str());
  return limit;
}

void BatchLimit::check(const char* option) const {
  const bool fine = is_count_ ? count_ >= 0 : fraction_ >= 0 && fraction_ <= 1;
  if (fine) return;
  throw UsageError(fmt::format("{} {}: give a number of batches of 0 or more, or a fraction from 0.0 to 1.0.", option,
                               is_count_ ? static_cast<double>(count_) : fraction_));
}

std::int64_t BatchLimit::of(std::int64_t total, const char* option) const {
  check(option);
  if (is_count()) return std::min(count_, total);
  const auto n = static_cast<std::int64_t>(static_cast<double>(total) * fraction_);
  if (n == 0 && total > 0 && fraction_ > 0)
    throw UsageError(fmt::format("{} {}: this leaves none of {} batches. Use {} or more, or a number of batches.",
                                 option, fraction_, total, 1.0 / static_cast<double>(total)));
  return n;
}

CheckInterval CheckInterval::parse(std::string_view text, const std::string& option) {
  if (text.find(':') != std::string_view::npos) return Duration::parse(text, option);
  return BatchLimit::parse(text, option);
}

DeviceList::DeviceList(std::initializer_list<int> indices) : text_(fmt::format("[{}]", fmt::join(indices, ", "))) {}

namespace {

/// Parses "0,3", "[0, 3]" or "3,"; nothing if the text is not a list.
std::optional<std::vector<int>> listed(std::string_view text) {
  const bool brackets = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  if (brackets)
    text = text.substr(1, text.size() - 2);
  else if (text.find(',') == std::string_view::npos)
    return std::nullopt;
  std::vector<int> out;
  while (!text.empty()) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    int index = -1;
    const auto got = std::from_chars(text.data(), text.data() + text.size(), index);
    if (got.ec != std::errc() || index < 0 || std::find(out.begin(), out.end(), index) != out.end())
      return std::nullopt;
    out.push_back(index);
    text.remove_prefix(static_cast<std::size_t>(got.ptr - text.data()));
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    if (text.empty()) break;
    if (text.front() != ',') return std::nullopt;
    text.remove_prefix(1);
    if (brackets && text.find_first_not_of(' ') == std::string_view::npos) return std::nullopt;
  }
  return out.empty() ? std::nullopt : std::optional(out);
}

std::optional<int> whole(std::string_view text) {
  int value = 0;
  const auto got = std::from_chars(text.data(), text.data() + text.size(), value);
  return got.ec == std::errc() && got.ptr == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

DeviceList DeviceList::parse(std::string_view text, const std::string& option) {
  const auto count = whole(text);
  if (text == "auto" || (count && (*count == -1 || *count > 0)) || listed(text)) return DeviceList(std::string(text));
  throw UsageError(fmt::format(
      "{} {}: give auto, -1 for all, a number of 1 or more, or different indices from 0 as 0,2 or [1].", option, text));
}

std::vector<int> DeviceList::indices(int available, const std::string& kind) const {
  parse(text_);
  const std::string there = fmt::format("this machine has {} {} device{}{}", available, kind, available == 1 ? "" : "s",
                                        available > 0 ? " (counted from 0)" : "");
  std::vector<int> out = listed(text_).value_or(std::vector<int>());
  if (out.empty()) {
    const int asked = is_auto() ? 1 : *whole(text_);
    const int count = asked < 0 ? available : asked;
    if (count == 0 || count > available)
      throw UsageError(
          fmt::format("--devices {}: {}. Use at most {}, or --devices -1 for all.", text_, there, available));
    for (int i = 0; i < count; ++i) out.push_back(i);
  }
  for (const int index : out)
    if (index >= available)
      throw UsageError(fmt::format("--devices {}: {}. Use indices below {}.", text_, there, available));
  return out;
}

CheckInterval::CheckInterval(Duration time) : time_(time) {}
CheckInterval::CheckInterval(const char* time) : time_(Duration(time)) {}

}  // namespace levin
