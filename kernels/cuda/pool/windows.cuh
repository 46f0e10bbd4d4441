#pragma once
// The elements of a plane that a window covers, and the windows that cover an element.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/indexing/divide.cuh"
#include "kernels/cuda/reduce/dispatch.h"

#include <levin/kernels/pool.h>

namespace levin::kernels::cuda {

/// A half-open range of steps, outputs, rows or columns.
struct PoolRange {
  std::int64_t begin, end;
};

/// Geometry along one axis of the plane.
struct PoolAxis {
  std::int64_t size, outputs, kernel, stride, padding, dilation;

  __device__ std::int64_t start(std::int64_t output) const { return output * stride - padding; }

  /// Returns the steps of the output's window that lie inside the plane.
  __device__ PoolRange inside(std::int64_t output) const {
    const std::int64_t first = start(output), left = size - first;
    const std::int64_t begin = first < 0 ? divide(-first + dilation - 1, dilation).quotient : 0;
    if (left <= 0) return {begin, 0};
    const std::int64_t end = divide(left + dilation - 1, dilation).quotient;
    return {begin, end < kernel ? end : kernel};
  }

  /// Returns the outputs whose windows span element `at`; with a dilation some of them may skip it.
  __device__ PoolRange outputs_over(std::int64_t at) const {
    const std::int64_t first = at + padding - dilation * (kernel - 1);
    const std::int64_t begin = first > 0 ? divide(first + stride - 1, stride).quotient : 0;
    const std::int64_t end = divide(at + padding, stride).quotient + 1;
    return {begin, end < outputs ? end : outputs};
  }
  /// Returns the step at which the output's window meets the element, or -1; the output is one of outputs_over(at).
  __device__ std::int64_t step_at(std::int64_t output, std::int64_t at) const {
    const Division way = divide(at - start(output), dilation);
    return way.remainder == 0 ? way.quotient : -1;
  }

  /// Returns the divisor of average pooling along this axis (dilation 1).
  __device__ std::int64_t average_count(std::int64_t output, bool count_padding) const {
    const std::int64_t first = start(output), reach = first + kernel;
    const std::int64_t end = reach < size + padding ? reach : size + padding;
    if (count_padding) return end - first;
    return (end < size ? end : size) - (first > 0 ? first : 0);
  }
};

struct PoolAxes {
  explicit PoolAxes(const PoolGeometry& g)
      : rows{g.h, g.oh, g.kernel_h, g.stride_h, g.padding_h, g.dilation_h}, columns{g.w,         g.ow,
                                                                                    g.kernel_w,  g.stride_w,
                                                                                    g.padding_w, g.dilation_w} {}
  PoolAxis rows, columns;
};

/// Plane, row and column of an element of (planes, rows, columns).
struct PoolPlace {
  __device__ PoolPlace(std::int64_t element, std::int64_t rows, std::int64_t columns) {
    const Division line = divide(element, columns), top = divide(line.quotient, rows);
    plane = top.quotient, row = top.remainder, column = line.remainder;
  }
  std::int64_t plane, row, column;
};

/// Calls f.template operator()<T, I>() with the device type of a floating dtype and the type of the geometry's indices;
/// throws DTypeError for other dtypes.
template <class F>
void dispatch_pool(DType t, const PoolGeometry& g, const char* op, F&& f) {
  dispatch_floats(t, op, [&]<class T>() {
    if (g.index_type() == DType::u8) return f.template operator()<T, std::uint8_t>();
    f.template operator()<T, std::int32_t>();
  });
}

}  // namespace levin::kernels::cuda
