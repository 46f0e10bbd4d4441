#pragma once
// Small value types of TrainerConfig that convert from the forms users write.

#include <levin/core/duration.h>
#include <levin/core/error.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace levin {

/// Part of an epoch's batches: a fraction (a floating-point number) or a count (an integer).
class BatchLimit {
 public:
  /// Takes a fraction, or a count.
  BatchLimit(std::floating_point auto fraction) : fraction_(static_cast<double>(fraction)) {}  // NOLINT: implicit
  BatchLimit(std::integral auto count) : count_(static_cast<std::int64_t>(count)), is_count_(true) {}  // NOLINT
  /// Parses "0.25" or "1.0" as a fraction, "20" as a count; throws UsageError that names `option`.
  static BatchLimit parse(std::string_view text, const std::string& option);

  /// True for a count; then count() has a meaning, else fraction().
  bool is_count() const { return is_count_; }
  double fraction() const { return fraction_; }
  std::int64_t count() const { return count_; }
  /// True for a count or a fraction of 0.
  bool is_zero() const { return is_count_ ? count_ == 0 : fraction_ == 0; }
  /// Returns the number of batches out of `total`, at most all. Throws UsageError if a fraction lies outside [0, 1] or
  /// leaves no batch of a nonempty total.
  std::int64_t of(std::int64_t total, const char* option) const;
  /// Throws UsageError for a negative count or a fraction outside [0, 1].
  void check(const char* option) const;

 private:
  double fraction_ = 1.0;
  std::int64_t count_ = 0;
  bool is_count_ = false;
};

/// Interval of validation within an epoch: a fraction of it, a number of batches, or a duration.
class CheckInterval {
 public:
  /// Takes a fraction or a count as BatchLimit does, or a time as Duration does.
  CheckInterval(std::floating_point auto fraction) : batches_(fraction) {}  // NOLINT: implicit
  CheckInterval(std::integral auto count) : batches_(count) {}              // NOLINT
  CheckInterval(BatchLimit batches) : batches_(batches) {}                  // NOLINT
  CheckInterval(Duration time);                                             // NOLINT
  CheckInterval(const char* time);                                          // NOLINT
  template <ChronoDuration D>
  CheckInterval(const D& time) : CheckInterval(Duration(time)) {}  // NOLINT
  /// Parses "0.25", "100" or "00:00:10:00"; throws UsageError that names `option`.
  static CheckInterval parse(std::string_view text, const std::string& option);

  const BatchLimit& batches() const { return batches_; }         ///< meaningless if a time is set
  const std::optional<Duration>& time() const { return time_; }  ///< empty for a fraction or a count

 private:
  BatchLimit batches_ = 1.0;
  std::optional<Duration> time_{};
};

/// Device selection: "auto", all (-1), the first n (2 or "2"), or some by index ("0,3", "[0, 3]", "3,", {0, 3}).
/// Indices count the visible devices from 0; CUDA_VISIBLE_DEVICES decides which these are.
class DeviceList {
 public:
  /// Takes one of these forms, which indices() checks.
  DeviceList(std::integral auto count) : text_(std::to_string(count)) {}  // NOLINT: implicit
  DeviceList(const char* text) : text_(text) {}                           // NOLINT
  DeviceList(std::string text) : text_(std::move(text)) {}                // NOLINT
  DeviceList(std::initializer_list<int> indices);                         // NOLINT
  /// Parses a text in one of these forms; throws UsageError that names `option` otherwise.
  static DeviceList parse(std::string_view text, const std::string& option = "--devices");

  /// The selection as it was given, or as a text of the same meaning; and whether it is "auto".
  const std::string& text() const { return text_; }
  bool is_auto() const { return text_ == "auto"; }
  /// Resolves the selection to indices, given `available` devices of a kind ("auto" takes the first). Throws UsageError
  /// with both numbers if more are requested than available.
  std::vector<int> indices(int available, const std::string& kind) const;

 private:
  std::string text_;
};

}  // namespace levin
