#pragma once
// Shared by the pooling kernels: the part of a window that lies inside the plane.

#include <levin/kernels/pool.h>

#include <algorithm>

namespace levin::kernels::cpu {

/// Minimum number of elements that a task should read.
inline constexpr int64_t kPoolGrain = 1 << 14;

/// Returns the number of planes, or rows of outputs, per task.
inline int64_t plane_grain(const PoolGeometry& g) {
  return std::max<int64_t>(1, kPoolGrain / std::max<int64_t>(1, g.h * g.w));
}
inline int64_t row_grain(const PoolGeometry& g) {
  return std::max<int64_t>(1, kPoolGrain / std::max<int64_t>(1, g.stride_h * g.w));
}

/// Steps [begin, end) of a window starting at `start` that lie in [0, size).
struct WindowRange {
  WindowRange(int64_t start, int64_t steps, int64_t dilation, int64_t size)
      : begin(start < 0 ? steps_in(-start, dilation) : 0),
        end(start >= size ? 0 : std::min(steps, steps_in(size - start, dilation))) {}
  int64_t begin, end;

 private:
  /// Returns distance / dilation, rounded up. A division takes longer than comparing the elements of a small window.
  static int64_t steps_in(int64_t distance, int64_t dilation) {
    return dilation == 1 ? distance : (distance + dilation - 1) / dilation;
  }
};

/// Returns the outputs [begin, end) whose windows lie entirely inside [0, size).
inline std::pair<int64_t, int64_t> inner_outputs(int64_t out, int64_t size, int64_t kernel, int64_t stride,
                                                 int64_t padding, int64_t dilation) {
  const int64_t begin = std::min(out, (padding + stride - 1) / stride);
  const int64_t room = size + padding - dilation * (kernel - 1) - 1;
  return {begin, room < 0 ? begin : std::clamp(room / stride + 1, begin, out)};
}

/// Returns where the vector of outputs from `at` on begins in a row's outputs [begin, end): the last vector of a row
/// overlaps the one before it, if there is one.
inline int64_t vector_start(int64_t begin, int64_t end, int64_t lanes, int64_t at) {
  return end - begin >= lanes ? std::min(at, end - lanes) : at;
}

/// Returns the divisor of average pooling along one axis.
inline int64_t average_count(int64_t start, int64_t kernel, int64_t padding, int64_t size, bool count_padding) {
  const int64_t end = std::min(start + kernel, size + padding);
  return count_padding ? end - start : std::min(end, size) - std::max<int64_t>(start, 0);
}

}  // namespace levin::kernels::cpu
