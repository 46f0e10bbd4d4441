#pragma once
// The minimum work of a kernel call according to its contract; the profiler compares it with the measured time. Every
// Args of a contract has a function work(kernel) that returns it.

#include <levin/core/tensor_view.h>

#include <span>

namespace levin::kernels {

/// The least that a call must move and compute.
struct Work {
  double bytes = 0;  ///< read and written in memory; broadcast elements count once
  double flops = 0;  ///< number of arithmetic operations
  DType dtype = DType::f32;  ///< type in which it computes
};

/// Returns the number of elements.
inline double count(const TensorView& t) { return static_cast<double>(t.numel()); }

/// Returns the bytes of the operands' memory; 0 for an operand that is absent or a number.
double bytes(const TensorView& t);
template <class... T>
double bytes(const TensorView& first, const T&... rest) {
  return bytes(first) + (bytes(rest) + ... + 0.0);
}

}  // namespace levin::kernels
