#pragma once
// The least work of a kernel call by its contract; the profiler compares it with the measured time. Every Args of a
// contract has a function work(kernel) that says it.

#include <levin/core/tensor_view.h>

#include <span>

namespace levin::kernels {

struct Work {
  double bytes = 0;  ///< read and written in memory; elements that are broadcast count once
  double flops = 0;
  DType dtype = DType::f32;  ///< in which it computes
};

inline double count(const TensorView& t) { return static_cast<double>(t.numel()); }

/// Bytes of the operands' memory; none for one that is absent or a number.
double bytes(const TensorView& t);
template <class... T>
double bytes(const TensorView& first, const T&... rest) {
  return bytes(first) + (bytes(rest) + ... + 0.0);
}

}  // namespace levin::kernels
