#pragma once
// Small value types of TrainerConfig that accept what people write.

#include <levin/core/error.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace levin {

/// Some of an epoch's batches: a fraction of them (a floating number) or a count (an integer).
class BatchLimit {
 public:
  BatchLimit(std::floating_point auto fraction) : fraction_(static_cast<double>(fraction)) {}  // NOLINT: implicit
  BatchLimit(std::integral auto count) : count_(static_cast<std::int64_t>(count)), is_count_(true) {}  // NOLINT
  /// "0.25" or "1.0" is a fraction, "20" a count; throws UsageError that names `option`.
  static BatchLimit parse(std::string_view text, const std::string& option);

  bool is_count() const { return is_count_; }
  double fraction() const { return fraction_; }
  std::int64_t count() const { return count_; }
  /// How many of `total` batches, at most all; throws UsageError where a fraction lies outside of [0, 1] or leaves
  /// nothing of some batches.
  std::int64_t of(std::int64_t total, const char* option) const;
  /// Throws UsageError for a negative count and a fraction outside of [0, 1].
  void check(const char* option) const;

 private:
  double fraction_ = 1.0;
  std::int64_t count_ = 0;
  bool is_count_ = false;
};

/// Devices by number or list: 2, "auto", "0,1".
class DeviceList {
 public:
  DeviceList(std::integral auto count) : text_(std::to_string(count)) {}  // NOLINT: implicit
  DeviceList(const char* text) : text_(text) {}                           // NOLINT
  DeviceList(std::string text) : text_(std::move(text)) {}                // NOLINT
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace levin
