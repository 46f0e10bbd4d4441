#pragma once
// Division of a tensor's bytes into a part for each rank, and into the segments of messages.

#include <levin/distributed/process_group.h>

#include <algorithm>
#include <vector>

namespace levin::distributed {

inline std::byte* bytes_of(const Tensor& t) { return static_cast<std::byte*>(t.raw_data()); }
inline std::size_t size_in_bytes(const Tensor& t) {
  return static_cast<std::size_t>(t.numel()) * static_cast<std::size_t>(size_of(t.dtype()));
}

/// Returns the first byte of each rank's part of `count` elements, and the end; the first parts may be one element
/// longer.
inline std::vector<std::size_t> even_parts(int64_t count, std::size_t element, int size) {
  std::vector<std::size_t> begin(static_cast<std::size_t>(size) + 1, 0);
  const auto n = static_cast<std::size_t>(size), all = static_cast<std::size_t>(count);
  for (std::size_t r = 0; r < n; ++r) begin[r + 1] = begin[r] + (all / n + (r < all % n ? 1 : 0)) * element;
  return begin;
}
inline std::vector<std::size_t> even_parts(const Tensor& t, int size) {
  return even_parts(t.numel(), static_cast<std::size_t>(size_of(t.dtype())), size);
}

/// Splits bytes [begin, end) into messages of at most `length` bytes.
struct Segments {
  std::size_t begin, end, length = std::size_t{256} << 10;
  std::size_t count() const { return (end - begin + length - 1) / length; }
  template <class F>
  void each(const F& f) const {
    for (std::size_t at = begin; at < end; at += length) f(at, std::min(length, end - at));
  }
};

}  // namespace levin::distributed
