#pragma once
// The elements of a plane that a window covers, and the windows that cover an element. N is the type of coordinates and
// offsets: 32 bits, in which a division costs a multiplication, or 64 for what does not fit.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/indexing/divide.cuh"
#include "kernels/cuda/reduce/dispatch.h"

#include <levin/kernels/pool.h>

#include <algorithm>

namespace levin::kernels::cuda {

/// A half-open range of steps, outputs, rows or columns.
template <class N>
struct PoolRange {
  N begin, end;
};

/// A size by which non-negative numbers are divided.
template <class N>
struct PoolDivisor {
  explicit PoolDivisor(std::int64_t v) : value(static_cast<N>(v)) {
    if constexpr (sizeof(N) == 4) fast = Divider(static_cast<std::uint32_t>(std::max<std::int64_t>(v, 1)));
  }
  __device__ N quotient(N n) const {
    if constexpr (sizeof(N) == 4) {
      return static_cast<N>(fast.quotient(static_cast<std::uint32_t>(n)));
    } else {
      return divide(n, value).quotient;
    }
  }
  __device__ N quotient_up(N n) const { return quotient(n + value - 1); }

  N value;
  Divider fast;
};

/// Geometry along one axis of the plane.
template <class N>
struct PoolAxis {
  PoolDivisor<N> size, outputs, stride, dilation;
  N kernel, padding;

  PoolAxis(std::int64_t n, std::int64_t windows, std::int64_t length, std::int64_t step, std::int64_t border,
           std::int64_t spread)
      : size(n),
        outputs(windows),
        stride(step),
        dilation(spread),
        kernel(static_cast<N>(length)),
        padding(static_cast<N>(border)) {}

  __device__ N start(N output) const { return output * stride.value - padding; }

  /// Returns the steps of the output's window that lie inside the plane.
  __device__ PoolRange<N> inside(N output) const {
    const N first = start(output), left = size.value - first;
    const N begin = first < 0 ? dilation.quotient_up(-first) : 0;
    if (left <= 0) return {begin, 0};
    const N end = dilation.quotient_up(left);
    return {begin, end < kernel ? end : kernel};
  }

  /// Returns the outputs whose windows span element `at`; with a dilation some of them may skip it.
  __device__ PoolRange<N> outputs_over(N at) const {
    const N first = at + padding - dilation.value * (kernel - 1);
    const N begin = first > 0 ? stride.quotient_up(first) : 0;
    const N end = stride.quotient(at + padding) + 1;
    return {begin, end < outputs.value ? end : outputs.value};
  }
  /// Returns the step at which the output's window meets the element, or -1; the output is one of outputs_over(at).
  __device__ N step_at(N output, N at) const {
    const N way = at - start(output), step = dilation.quotient(way);
    return step * dilation.value == way ? step : -1;
  }

  /// Returns the divisor of average pooling along this axis (dilation 1).
  __device__ N average_count(N output, bool count_padding) const {
    const N first = start(output), reach = first + kernel;
    const N end = reach < size.value + padding ? reach : size.value + padding;
    if (count_padding) return end - first;
    return (end < size.value ? end : size.value) - (first > 0 ? first : 0);
  }
};

template <class N>
struct PoolAxes {
  explicit PoolAxes(const PoolGeometry& g)
      : rows(g.h, g.oh, g.kernel_h, g.stride_h, g.padding_h, g.dilation_h),
        columns(g.w, g.ow, g.kernel_w, g.stride_w, g.padding_w, g.dilation_w) {}
  PoolAxis<N> rows, columns;
};

/// Plane, row and column of an element of (planes, rows, columns).
template <class N>
struct PoolPlace {
  __device__ PoolPlace(N element, const PoolDivisor<N>& rows, const PoolDivisor<N>& columns) {
    const N line = columns.quotient(element);
    plane = rows.quotient(line), row = line - plane * rows.value, column = element - line * columns.value;
  }
  N plane, row, column;
};

/// Returns this thread's number in the grid, and the number of threads.
template <class N>
__device__ inline N pool_thread() {
  return static_cast<N>(global_thread());
}
template <class N>
__device__ inline N pool_threads() {
  return static_cast<N>(grid_threads());
}

/// True if every number that a kernel computes from the geometry fits into 32 bits. Kernels add up to three sizes.
inline bool fits_32_bits(const PoolGeometry& g) {
  constexpr std::int64_t most = std::int64_t{1} << 29;
  return std::max({g.planes * g.h * g.w, g.planes * g.oh * g.ow, g.kernel_h, g.kernel_w, g.stride_h, g.stride_w,
                   g.padding_h, g.padding_w, g.dilation_h, g.dilation_w}) <= most;
}

/// True if columns 2n and 2n + 1 form window n of each row, and no column is left over.
inline bool windows_in_pairs(const PoolGeometry& g) {
  return g.kernel_w == 2 && g.stride_w == 2 && g.padding_w == 0 && g.dilation_w == 1 && g.w % 2 == 0;
}

/// True if the addresses are multiples of 16.
template <class... P>
bool aligned_16(const P*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) | ...) & 15) == 0;
}

/// Calls f.template operator()<T, I, N>() with the device type of a floating dtype, the type of the geometry's indices
/// and the type of offsets; throws DTypeError for other dtypes. Windows too large for bytes are rare, and counted in 64
/// bits.
template <class F>
void dispatch_pool(DType t, const PoolGeometry& g, const char* op, F&& f) {
  dispatch_floats(t, op, [&]<class T>() {
    if (g.index_type() != DType::u8) return f.template operator()<T, std::int32_t, std::int64_t>();
    if (!fits_32_bits(g)) return f.template operator()<T, std::uint8_t, std::int64_t>();
    f.template operator()<T, std::uint8_t, std::int32_t>();
  });
}

/// The same for kernels without indices: f<T, N>().
template <class F>
void dispatch_averages(DType t, const PoolGeometry& g, const char* op, F&& f) {
  dispatch_floats(t, op, [&]<class T>() {
    fits_32_bits(g) ? f.template operator()<T, std::int32_t>() : f.template operator()<T, std::int64_t>();
  });
}

}  // namespace levin::kernels::cuda
