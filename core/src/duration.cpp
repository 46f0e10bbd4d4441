#include <levin/core/duration.h>
#include <levin/core/error.h>

#include <fmt/format.h>

#include <charconv>
#include <chrono>

namespace levin {

Duration::Duration(const char* text) : Duration(parse(text, "a duration")) {}
Duration::Duration(const std::string& text) : Duration(parse(text, "a duration")) {}

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
  const std::int64_t s = std::chrono::seconds(*this).count();
  return fmt::format("{:02}:{:02}:{:02}:{:02}", s / 86400, s / 3600 % 24, s / 60 % 60, s % 60);
}

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace levin
