#pragma once
// A reduction as its kernels see it: `outputs` lines of `n` elements each. A line may be cut into pieces, whose
// accumulators then form lines of their own; so every launch is one level of the same fixed tree.

#include "kernels/cuda/indexing/divide.cuh"
#include "kernels/cuda/reduce/ops.cuh"

#include <levin/core/tensor_view.h>

#include <algorithm>

namespace levin::kernels::cuda {

/// Axes of x, the innermost last, sorted by stride and merged if evenly spaced.
struct ReduceAxes {
  struct Axis {
    std::int64_t size, x, out;  ///< strides in elements
  };
  int count = 0;
  Axis axis[kMaxDims];

  std::int64_t numel() const {
    std::int64_t n = 1;
    for (int i = 0; i < count; ++i) n *= axis[i].size;
    return n;
  }
  void simplify() {
    for (int i = 1; i < count; ++i) {
      for (int k = i; k > 0 && axis[k - 1].x < axis[k].x; --k) std::swap(axis[k - 1], axis[k]);
    }
    int kept = 0;
    for (int i = 1; i < count; ++i) {
      Axis& a = axis[kept];
      const Axis& b = axis[i];
      if (a.x == b.x * b.size && a.out == b.out * b.size) {
        a = {a.size * b.size, b.x, b.out};
      } else {
        axis[++kept] = b;
      }
    }
    count = std::min(count, kept + 1);
  }

  /// True if the elements of x, taken along the last axis if `along`, form packs of `width` that begin at multiples of
  /// `width`. An axis that is not taken must step by such multiples.
  bool packs(std::int64_t width, bool along) const {
    for (int i = 0; i < count; ++i) {
      const bool last = along && i == count - 1;
      if (last ? axis[i].x != 1 || axis[i].size % width != 0 : axis[i].x % width != 0) return false;
    }
    return count > 0 || !along;
  }

  /// Returns the offset of element `index` in row-major order.
  __device__ std::int64_t x_at(std::int64_t index) const { return place(index, &Axis::x); }
  __device__ std::int64_t out_at(std::int64_t index) const { return place(index, &Axis::out); }

 private:
  __device__ std::int64_t place(std::int64_t index, std::int64_t Axis::*stride) const {
    std::int64_t at = 0;
    for (int i = count - 1; i > 0; --i) {
      at += index % axis[i].size * (axis[i].*stride);
      index /= axis[i].size;
    }
    return count > 0 ? at + index * (axis[0].*stride) : 0;
  }
};

/// The elements of a line along at most two axes, at most 2^30 of them: one multiplication locates one.
struct ReduceWalk {
  ReduceWalk() = default;
  explicit ReduceWalk(const ReduceAxes& axes)
      : inner(axes.axis[axes.count - 1].x),
        outer(axes.count == 2 ? axes.axis[0].x : 0),
        by_size(static_cast<std::uint32_t>(axes.axis[axes.count - 1].size)) {}
  static bool supports(const ReduceAxes& axes) {
    return (axes.count == 1 || axes.count == 2) && axes.numel() > 0 && axes.numel() <= 1 << 30;
  }

  /// Returns the offset of element `index`.
  __device__ std::int64_t at(std::int32_t index) const {
    const auto i = static_cast<std::uint32_t>(index);
    const std::uint32_t line = by_size.quotient(i);
    return line * outer + (i - line * by_size.divisor) * inner;
  }

  std::int64_t inner = 0, outer = 0;  ///< strides of x in elements
  Divider by_size{};                  ///< of the inner axis
};

/// Rounds to the type of `out`, which is floating if and only if the accumulator is.
__device__ inline void store_accumulator(void* out, DType dtype, std::int64_t at, double value) {
  if (dtype == DType::f64) static_cast<double*>(out)[at] = value;
  if (dtype == DType::f32) static_cast<float*>(out)[at] = static_cast<float>(value);
  if (dtype == DType::f16) static_cast<__half*>(out)[at] = convert<__half>(value);
  if (dtype == DType::bf16) static_cast<__nv_bfloat16*>(out)[at] = convert<__nv_bfloat16>(value);
}
__device__ inline void store_accumulator(void* out, DType dtype, std::int64_t at, std::int64_t value) {
  if (dtype == DType::i64) static_cast<std::int64_t*>(out)[at] = value;
  if (dtype == DType::i32) static_cast<std::int32_t*>(out)[at] = static_cast<std::int32_t>(value);
  if (dtype == DType::i16) static_cast<std::int16_t*>(out)[at] = static_cast<std::int16_t>(value);
  if (dtype == DType::i8) static_cast<std::int8_t*>(out)[at] = static_cast<std::int8_t>(value);
  if (dtype == DType::u8) static_cast<std::uint8_t*>(out)[at] = static_cast<std::uint8_t>(value);
  if (dtype == DType::boolean) static_cast<bool*>(out)[at] = value != 0;
}

/// T is the element type of x, Acc the accumulator type.
template <class T, class Acc>
struct ReduceLines {
  const T* x = nullptr;
  ReduceAxes kept, reduced;
  std::int64_t outputs = 0, n = 0;
  std::int64_t cuts = 1, each = 0;  ///< pieces of a line, and elements of a piece; the last may have fewer
  void* out = nullptr;
  DType out_dtype = DType::f32;
  ReduceFinish finish;
  Acc* partial = nullptr;  ///< (outputs, cuts), written instead of out unless null

  ReduceWalk walk{};    ///< along `reduced`, for kernels that take two axes
  bool packed = false;  ///< whether the packs that a kernel reads are aligned in memory

  bool contiguous() const { return n <= 1 || (reduced.count == 1 && reduced.axis[0].x == 1); }
  /// True if packs of `width` elements of a line, or else of neighbouring outputs, are aligned in memory.
  bool packs(std::int64_t width, bool along_lines) const {
    return reduced.packs(width, along_lines) && kept.packs(width, !along_lines) &&
           reinterpret_cast<std::uintptr_t>(x) % (static_cast<std::size_t>(width) * sizeof(T)) == 0;
  }
  void cut(std::int64_t elements) {
    each = elements;
    cuts = n == 0 ? 1 : ceil_div(n, elements);
  }

  __device__ std::int64_t output_of(std::int64_t task) const { return cuts == 1 ? task : task / cuts; }
  /// Returns the first element of the piece in its line; length_of() returns the number of its elements.
  __device__ std::int64_t first_of(std::int64_t task) const { return cuts == 1 ? 0 : task % cuts * each; }
  __device__ std::int64_t length_of(std::int64_t task) const {
    const std::int64_t first = first_of(task);
    return cuts == 1 ? n : n - first < each ? n - first : each;
  }
  /// Returns the piece's elements if lines are contiguous.
  __device__ const T* piece(std::int64_t task) const { return x + kept.x_at(output_of(task)) + first_of(task); }
  __device__ void store(std::int64_t task, Acc value) const {
    if (partial) {
      partial[task] = value;
    } else {
      store_accumulator(out, out_dtype, kept.out_at(task), finish(value));
    }
  }
};

inline constexpr int kReduceThreads = 256;

}  // namespace levin::kernels::cuda
