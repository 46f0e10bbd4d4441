#pragma once

#include <levin/core/error.h>

#include <fmt/format.h>

#include <cstdint>

namespace levin::data::detail {

/// Throws IndexError unless 0 <= index < size.
inline void check_index(std::int64_t index, std::int64_t size) {
  if (index >= 0 && index < size) return;
  throw IndexError(fmt::format("[dataset] index {} is out of range for {} samples, counted from 0.", index, size));
}

}  // namespace levin::data::detail
