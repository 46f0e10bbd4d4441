#pragma once
// Shared by the kernels that read indices.

#include <levin/core/error.h>
#include <levin/core/tensor_view.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace levin::kernels::cpu {

/// Minimum number of elements that a task should move, so that its start-up cost is negligible.
inline constexpr int64_t kIndexGrain = 1 << 14;

/// Returns how many items of `elements` each form one chunk.
inline int64_t index_grain(int64_t elements) {
  return std::max<int64_t>(1, kIndexGrain / std::max<int64_t>(1, elements));
}

/// Calls f.operator()<T>() with an unsigned type of the element's size.
template <class F>
void dispatch_size(DType t, F&& f) {
  switch (size_of(t)) {
    case 1: return f.template operator()<std::uint8_t>();
    case 2: return f.template operator()<std::uint16_t>();
    case 4: return f.template operator()<std::uint32_t>();
    default: return f.template operator()<std::uint64_t>();
  }
}

/// Throws IndexError for element number `at` of an index of these sizes.
[[noreturn]] inline void index_out_of_range(const char* op, int64_t value, const Shape& sizes, int64_t at,
                                            int64_t size) {
  Shape position = sizes;
  for (int i = sizes.size() - 1; i >= 0; --i) {
    position[i] = at % sizes[i];
    at /= sizes[i];
  }
  throw IndexError(fmt::format("[{}] index {} at position {} is out of range: it must be 0 or more and below {}.", op,
                               value, sizes.size() == 1 ? std::to_string(position[0]) : to_string(position), size));
}

inline bool is_index(int64_t value, int64_t size) {
  return static_cast<std::uint64_t>(value) < static_cast<std::uint64_t>(size);
}

}  // namespace levin::kernels::cpu
