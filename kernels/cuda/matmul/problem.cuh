#pragma once
// The matrix product as its kernels see it. Both operands have one form: element (i, k) of an operand is data[i * line
// + k * step], where i counts the rows of A or the columns of B; so a transposed matrix only swaps the strides.

#include "kernels/cuda/base/cuda.h"

#include <levin/kernels/matmul.h>

namespace levin::kernels::cuda {

/// Accumulator type of products: float for floats of at most 32 bits, double, and wrapping 64 bits for integers.
template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, std::uint64_t, ComputeType<T>>;

/// Offset of each product of a batch, from the leading axes, the innermost first.
struct BatchOffsets {
  int axes = 0;
  std::int64_t size[kMaxDims], stride[kMaxDims];

  __device__ std::int64_t of(std::int64_t index) const {
    if (axes == 1) return index * stride[0];
    std::int64_t offset = 0;
    for (int i = 0; i < axes; ++i) {
      offset += index % size[i] * stride[i];
      index /= size[i];
    }
    return offset;
  }
};

template <class T>
struct Operand {
  const T* data = nullptr;
  std::int64_t line = 0, step = 0;
  BatchOffsets batch;

  __device__ const T* of(std::int64_t index) const { return data + batch.of(index); }
};

/// C_i (m, n) = alpha A_i (m, k) B_i (k, n) + beta C_i + bias (n) for each i in [0, batch); C is contiguous.
template <class T>
struct Problem {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  Operand<T> a, b;
  T* c = nullptr;
  const T* bias = nullptr;      ///< may be null
  const T* residual = nullptr;  ///< (batch, m, n), added last; may be null
  Sum<T> alpha{}, beta{};
};

namespace detail {
template <class T>
Sum<T> scalar(double x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
  } else {
    return static_cast<Sum<T>>(x);
  }
}
}  // namespace detail

/// T is a dtype's C++ type in Levin; the problem uses the device type. Leading axes are merged if the strides allow.
template <class T>
Problem<DeviceType<T>> problem_of(const MatmulArgs& args) {
  using D = DeviceType<T>;
  const TensorView &out = args.out, &a = args.a, &b = args.b;
  const int lead = out.dim() - 2;
  Problem<D> p;
  p.m = out.size(lead), p.n = out.size(lead + 1), p.k = a.size(lead + 1);
  p.a.data = reinterpret_cast<const D*>(a.data<T>());
  p.b.data = reinterpret_cast<const D*>(b.data<T>());
  p.a.line = a.stride(lead), p.a.step = a.stride(lead + 1);
  p.b.line = b.stride(lead + 1), p.b.step = b.stride(lead);
  p.c = reinterpret_cast<D*>(out.data<T>());
  if (args.bias.pointer) p.bias = reinterpret_cast<const D*>(args.bias.data<T>());
  p.alpha = detail::scalar<D>(args.alpha), p.beta = detail::scalar<D>(args.beta);
  int axes = 0;
  for (int i = lead - 1; i >= 0; --i) {
    const std::int64_t size = out.size(i), a_stride = a.stride(i), b_stride = b.stride(i);
    p.batch *= size;
    if (size == 1) continue;
    const int last = axes - 1;
    if (last >= 0 && a_stride == p.a.batch.stride[last] * p.a.batch.size[last] &&
        b_stride == p.b.batch.stride[last] * p.b.batch.size[last]) {
      p.a.batch.size[last] *= size;
      p.b.batch.size[last] *= size;
      continue;
    }
    p.a.batch.size[axes] = p.b.batch.size[axes] = size;
    p.a.batch.stride[axes] = a_stride, p.b.batch.stride[axes] = b_stride;
    ++axes;
  }
  p.a.batch.axes = p.b.batch.axes = axes;
  return p;
}

/// True if every 16 bytes of a line along `step` or along `line` (stride 1) can be moved at once.
template <class T>
bool vector_ready(const Operand<T>& x) {
  constexpr std::int64_t width = 16 / static_cast<std::int64_t>(sizeof(T));
  if (x.line != 1 && x.step != 1) return false;
  if ((x.step == 1 ? x.line : x.step) % width != 0) return false;
  for (int i = 0; i < x.batch.axes; ++i) {
    if (x.batch.stride[i] % width != 0) return false;
  }
  return reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0;
}

}  // namespace levin::kernels::cuda
