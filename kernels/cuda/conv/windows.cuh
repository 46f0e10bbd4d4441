#pragma once
// The operands of convolutions written as matrix products: elements are located in the images when they are needed.

#include "kernels/cuda/conv/shape.cuh"
#include "kernels/cuda/indexing/divide.cuh"
#include "kernels/cuda/matmul/operands.cuh"

#include <numeric>

namespace levin::kernels::cuda {

/// A Divider of non-negative numbers of type int. A divisor of 0 counts as 1: it occurs only for empty tensors.
struct FastDivide : Divider {
  FastDivide() = default;
  explicit FastDivide(std::int64_t d) : Divider(d < 1 ? 1 : static_cast<std::uint32_t>(d)) {}
  __device__ int quotient(int n) const { return static_cast<int>(Divider::quotient(static_cast<std::uint32_t>(n))); }
  __device__ int rest(int n, int of_quotient) const { return n - of_quotient * static_cast<int>(divisor); }
};

/// One axis of the windows of a product whose sums run over taps and channels. Tap p of the window of pixel i lies at
/// first + i * step + p * tap, which may be outside of the `length` positions of the image.
struct WindowAxis {
  int pixels, first, step, tap, taps, length;
  int filter_first = 0, filter_step = 1;  ///< tap p is the filter's tap filter_first + p * filter_step
  int out_first = 0, out_step = 1;        ///< the result of pixel i lies at out_first + i * out_step

  /// Every position is a pixel, without a tap.
  static WindowAxis all(int length) { return {length, 0, 1, 0, 0, length}; }
  static WindowAxis forward(int in, int out, int kernel, int stride, int padding, int dilation) {
    return {out, -padding, stride, dilation, kernel, in};
  }
  /// The input's gradient at the positions `rest`, `rest` + stride, ... The outputs that read them do so with every
  /// filter_step-th tap only, and lie side by side.
  static WindowAxis backward(int in, int out, int kernel, int stride, int padding, int dilation, int rest) {
    const int every = stride / std::gcd(stride, dilation);
    int tap = 0;
    while (tap < kernel && (rest + padding - tap * dilation) % stride != 0) ++tap;
    WindowAxis a{static_cast<int>(ceil_div(in - rest, stride)), 0, 1, 0, 0, out};
    a.out_first = rest, a.out_step = stride;
    if (tap == kernel) return a;
    a.first = (rest + padding - tap * dilation) / stride, a.tap = -(every * dilation / stride);
    a.taps = static_cast<int>(ceil_div(kernel - tap, every));
    a.filter_first = tap, a.filter_step = every;
    return a;
  }

  /// Returns a bit for each tap that lies within the image, for the window that begins at `position`.
  __device__ std::uint32_t inside(int position) const {
    if (tap == 1 || tap == -1) {
      const int before = tap == 1 ? -position : position - length + 1;  // taps that lie in front of the image
      const int behind = tap == 1 ? length - position : position + 1;
      const int begin = before < 0 ? 0 : before, end = behind < taps ? behind : taps;
      return begin < end ? (1u << end) - (1u << begin) : 0;
    }
    std::uint32_t bits = 0;
    for (int p = 0; p < taps; ++p, position += tap) {
      if (position >= 0 && position < length) bits |= 1u << p;
    }
    return bits;
  }
};

/// A position in an image: the offset of its plane, and a row and a column that may lie outside.
struct Spot {
  std::int64_t plane;
  int h, w;
};

/// Iterates an index over planes, rows and columns: the pixels of a batch or the taps of a filter.
struct Walk {
  FastDivide area, width;  ///< of a plane: rows * columns, columns
  int rows;
  std::int64_t plane;  ///< elements from one plane to the next
  int h, h_step, w, w_step;

  Walk(std::int64_t plane_rows, std::int64_t columns, std::int64_t elements, int first_h, int step_h, int first_w,
       int step_w)
      : area(plane_rows * columns),
        width(columns),
        rows(static_cast<int>(plane_rows)),
        plane(elements),
        h(first_h),
        h_step(step_h),
        w(first_w),
        w_step(step_w) {}

  __device__ Spot at(int index) const {
    const int outer = area.quotient(index), inside = area.rest(index, outer);
    const int row = width.quotient(inside), column = width.rest(inside, row);
    return {outer * plane, h + row * h_step, w + column * w_step};
  }
  __device__ void next(Spot& s) const {
    s.w += w_step;
    if (s.w != w + static_cast<int>(width.divisor) * w_step) return;
    s.w = w, s.h += h_step;
    if (s.h != h + rows * h_step) return;
    s.h = h, s.plane += plane;
  }
};

/// Reads the image at the sum of a line's and a step's spot, 0 outside of the image. With `Strided` only every
/// stride-th position holds an element: the image is the gradient of a convolution of that stride.
template <class T, bool Strided>
struct WindowReader {
  using Line = Spot;
  using Step = Spot;
  const T* image;
  Walk lines, steps;
  int line_count, height, width;
  FastDivide stride_h, stride_w;

  __device__ Line line(int i) const {  // a line that does not exist lies outside of every image
    return i < line_count ? lines.at(i) : Spot{0, -(1 << 30), 0};
  }
  __device__ Step step(int k) const { return steps.at(k); }
  __device__ void next(Step& s) const { steps.next(s); }
  __device__ const T* at(const Line& l, const Step& s) const {
    int h = l.h + s.h, w = l.w + s.w;
    if constexpr (Strided) {
      if (h < 0 || w < 0) return nullptr;
      const int row = stride_h.quotient(h), column = stride_w.quotient(w);
      if (stride_h.rest(h, row) != 0 || stride_w.rest(w, column) != 0) return nullptr;
      h = row, w = column;
    }
    if (static_cast<unsigned>(h) >= static_cast<unsigned>(height)) return nullptr;
    if (static_cast<unsigned>(w) >= static_cast<unsigned>(width)) return nullptr;
    return image + l.plane + s.plane + static_cast<std::int64_t>(h) * width + w;
  }
  __device__ static constexpr bool contiguous() { return false; }
};

/// The groups are the batch of products.
template <class T, bool Strided, Access access>
struct WindowOperand {
  using Element = T;
  using Reader = WindowReader<T, Strided>;
  static constexpr Access kAccess = access;
  Reader of_first;
  std::int64_t group;  ///< elements from one group to the next

  __device__ Reader reader(std::int64_t batch) const {
    Reader r = of_first;
    r.image += batch * group;
    return r;
  }
};

/// A matrix whose steps come in two levels: k = (outer, inner).
template <class T>
struct PieceReader {
  using Line = const T*;
  struct Step {
    std::int64_t offset;
    int inside;
  };
  const T* data;
  std::int64_t line_stride;
  int line_count;
  FastDivide inner;
  std::int64_t outer_stride;

  __device__ Line line(int i) const { return i < line_count ? data + i * line_stride : nullptr; }
  __device__ Step step(int k) const {
    const int outer = inner.quotient(k), inside = inner.rest(k, outer);
    return {outer * outer_stride + inside, inside};
  }
  __device__ void next(Step& s) const {
    ++s.offset;
    if (++s.inside != static_cast<int>(inner.divisor)) return;
    s.inside = 0, s.offset += outer_stride - inner.divisor;
  }
  __device__ const T* at(Line l, const Step& s) const { return l ? l + s.offset : nullptr; }
  __device__ static constexpr bool contiguous() { return false; }
};

template <class T>
struct PieceOperand {
  using Element = T;
  using Reader = PieceReader<T>;
  static constexpr Access kAccess = Access::along_k;
  Reader of_first;
  std::int64_t group;

  __device__ Reader reader(std::int64_t batch) const {
    Reader r = of_first;
    r.data += batch * group;
    return r;
  }
};

}  // namespace levin::kernels::cuda
