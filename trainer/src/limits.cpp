#include <levin/trainer/limits.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

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

Duration Duration::parse(std::string_view text, const std::string& option) {
  std::int64_t parts[4] = {};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  bool fine = true;
  for (int i = 0; i < 4 && fine; ++i) {
    fine = i == 0 || (at != end && *at++ == ':');
    fine = fine && at != end && *at >= '0' && *at <= '9';
    if (!fine) break;
    const auto read = std::from_chars(at, end, parts[i]);
    fine = read.ec == std::errc() && read.ptr - at <= 6;
    at = read.ptr;
  }
  if (!fine || at != end || parts[1] > 23 || parts[2] > 59 || parts[3] > 59)
    throw UsageError(
        fmt::format("{} {}: give days, hours, minutes and seconds as DD:HH:MM:SS, such as 00:12:00:00.", option, text));
  return std::chrono::seconds(((parts[0] * 24 + parts[1]) * 60 + parts[2]) * 60 + parts[3]);
}

std::string Duration::text() const {
  const auto s = std::chrono::duration_cast<std::chrono::seconds>(value_).count();
  return fmt::format("{:02}:{:02}:{:02}:{:02}", s / 86400, s / 3600 % 24, s / 60 % 60, s % 60);
}

CheckInterval CheckInterval::parse(std::string_view text, const std::string& option) {
  if (text.find(':') != std::string_view::npos) return Duration::parse(text, option);
  return BatchLimit::parse(text, option);
}

}  // namespace levin
