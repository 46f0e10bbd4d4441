#pragma once
// Shared by the kernels that move elements by index.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/indexing/divide.cuh"
#include "kernels/cuda/indexing/guard.cuh"

#include <levin/kernels/indexing.h>

namespace levin::kernels::cuda {

/// The same for units of up to 16 bytes, which are moved as a whole.
template <class F>
void with_unit(std::int64_t bytes, F&& f) {
  if (bytes == 16) return f.template operator()<Pack<std::uint64_t, 2>>();
  with_element(bytes, f);
}

/// The largest unit in bytes, at most 16, of which all of these lengths and addresses are multiples.
class CommonUnit {
 public:
  CommonUnit& of(std::int64_t bytes) { return bits_ |= static_cast<std::uint64_t>(bytes), *this; }
  CommonUnit& of(const void* p) { return bits_ |= reinterpret_cast<std::uintptr_t>(p), *this; }
  std::int64_t bytes() const { return static_cast<std::int64_t>(bits_ & (~bits_ + 1)); }

 private:
  std::uint64_t bits_ = 16;
};

/// Offsets of an index's elements in a contiguous tensor of other sizes, without the step along `axis` if it is given.
/// Axes are merged if that tensor's strides allow; the innermost comes first.
struct Positions {
  int axes = 0;
  std::int64_t size[kMaxDims], stride[kMaxDims];

  Positions(const Shape& index, const Shape& sizes, int without_axis = -1) {
    const Shape strides = contiguous_strides(sizes);
    for (int d = index.size() - 1; d >= 0; --d) {
      const std::int64_t step = d == without_axis ? 0 : strides[d];
      if (index[d] == 1) continue;
      if (axes > 0 && step == stride[axes - 1] * size[axes - 1]) {
        size[axes - 1] *= index[d];
      } else {
        size[axes] = index[d], stride[axes] = step;
        ++axes;
      }
    }
  }

  __device__ std::int64_t of(std::int64_t element) const {
    std::int64_t at = 0;
    for (int i = 0; i + 1 < axes; ++i) {
      const Division part = divide(element, size[i]);
      at += part.remainder * stride[i];
      element = part.quotient;
    }
    return axes > 0 ? at + element * stride[axes - 1] : at;
  }
};

/// a + b, rounded to T.
template <class T>
__device__ T add(T a, T b) {
  using C = ComputeType<T>;
  return convert<T>(static_cast<C>(convert<C>(a) + convert<C>(b)));
}

}  // namespace levin::kernels::cuda
