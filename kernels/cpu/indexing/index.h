#pragma once
// Shared by the kernels that read indices.

#include <levin/core/error.h>
#include <levin/core/tensor_view.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

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

/// Copies a few bytes by overlapping words: a call of memcpy takes longer.
inline void copy_short(std::byte* to, const std::byte* from, int64_t bytes) {
  const auto word = [&]<int64_t size>(int64_t at) { std::memcpy(to + at, from + at, size); };
  if (bytes >= 16) {
    int64_t i = 0;
    for (; i + 64 < bytes; i += 64) word.template operator()<64>(i);
    for (; i + 16 < bytes; i += 16) word.template operator()<16>(i);
    word.template operator()<16>(bytes - 16);
  } else if (bytes >= 8) {
    word.template operator()<8>(0);
    word.template operator()<8>(bytes - 8);
  } else {
    for (int64_t i = 0; i < bytes; ++i) to[i] = from[i];
  }
}

}  // namespace levin::kernels::cpu
