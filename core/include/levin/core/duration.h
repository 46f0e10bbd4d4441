#pragma once
// Spans of time. A header that takes them need not include <chrono>, which costs each program more than this file does.

#include <compare>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace levin {

/// A std::chrono::duration.
template <class T>
concept ChronoDuration = requires(const T& value) {
  typename T::rep;
  typename T::period;
  { value.count() } -> std::convertible_to<typename T::rep>;
};

/// A time span: any std::chrono duration, or "DD:HH:MM:SS" (days, hours, minutes, seconds; two days are "02:00:00:00").
class Duration {
 public:
  /// A span of 0.
  constexpr Duration() = default;
  /// Converts to nanoseconds; parts of one are cut off.
  template <ChronoDuration D>
  constexpr Duration(const D& value)  // NOLINT: implicit
      : nanoseconds_(scaled<std::int64_t, typename D::period::type, Nano>(value.count())) {}
  /// Converts a number of seconds.
  static constexpr Duration of_seconds(double seconds) {
    Duration out;
    out.nanoseconds_ = static_cast<std::int64_t>(seconds * 1e9);
    return out;
  }
  /// Throws UsageError if the text is malformed.
  Duration(const char* text);         // NOLINT
  Duration(const std::string& text);  // NOLINT
  /// Parses strictly four numbers, hours below 24, minutes and seconds below 60; the UsageError names `option`.
  static Duration parse(std::string_view text, const std::string& option);

  /// Converts to a std::chrono duration; parts of its unit are cut off if it counts in integers.
  template <ChronoDuration D>
  constexpr operator D() const {  // NOLINT: implicit
    return D(scaled<typename D::rep, Nano, typename D::period::type>(nanoseconds_));
  }
  /// The span in seconds.
  constexpr double seconds() const { return static_cast<double>(nanoseconds_) / 1e9; }
  /// Returns "DD:HH:MM:SS", without fractions of a second.
  std::string text() const;

  /// Orders spans by their length.
  friend constexpr auto operator<=>(const Duration&, const Duration&) = default;

 private:
  struct Nano {
    static constexpr std::int64_t num = 1, den = 1'000'000'000;
  };
  /// Converts a number of units of `From` seconds to units of `To` seconds.
  template <class Result, class From, class To, class Count>
  static constexpr Result scaled(Count count) {
    constexpr bool exact = std::integral<Count> && std::integral<Result>;
    if constexpr (exact && From::num * To::den % (From::den * To::num) == 0)
      return static_cast<Result>(count * (From::num * To::den / (From::den * To::num)));
    else if constexpr (exact && From::den * To::num % (From::num * To::den) == 0)
      return static_cast<Result>(count / (From::den * To::num / (From::num * To::den)));
    else
      return static_cast<Result>(static_cast<long double>(count) * From::num * To::den / From::den / To::num);
  }

  std::int64_t nanoseconds_ = 0;
};

/// Returns the seconds since some moment before this process began, by a clock that is never set back or forward.
double monotonic_seconds();

}  // namespace levin
