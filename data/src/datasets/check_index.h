#pragma once
// Checks of arguments that several datasets share.

#include <levin/core/error.h>

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

namespace levin::data::detail {

/// Throws IndexError unless 0 <= index < size.
inline void check_index(std::int64_t index, std::int64_t size) {
  if (index >= 0 && index < size) return;
  throw IndexError(fmt::format("[dataset] index {} is out of range for {} samples, counted from 0.", index, size));
}

/// Throws ValueError, tagged `dataset`, for another split than "train" and "test".
inline void check_split(const char* dataset, std::string_view split) {
  if (split == "train" || split == "test") return;
  throw ValueError(fmt::format("[{}] \"{}\" is not a split: write \"train\" or \"test\".", dataset, split));
}

}  // namespace levin::data::detail
