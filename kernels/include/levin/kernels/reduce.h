#pragma once
// Contracts of reductions.
//
// `out` has as many axes as x, each of x's size or 1: an axis of size 1 where x has another size is reduced. Any
// strides; out and x do not overlap. Sums run in trees that the shape alone decides, so the same bits come from any
// number of threads: floating types accumulate in double, integers and bool in int64 (which wraps), and the result is
// rounded once to out's type. A reduction of no elements gives the operation's neutral element. Bytes: x once, out
// once; flops: one an element unless said.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// out = sum(x) / divisor. Floating x: any floating out. Integers and bool: out is int64 and the divisor is not used.
struct SumArgs {
  TensorView out, x;
  double divisor = 1.0;

  /// Least work of a call.
  Work work(std::string_view) const { return {bytes(out, x), count(x), x.dtype}; }
};
extern constinit Kernel<void(const SumArgs&, Stream&)> sum;

struct ReduceArgs {
  TensorView out, x;

  /// Least work of a call.
  Work work(std::string_view) const { return {bytes(out, x), count(x), x.dtype}; }
};
using ReduceKernel = Kernel<void(const ReduceArgs&, Stream&)>;

/// Types of x and out as for sum.
extern constinit ReduceKernel prod;
/// Largest and smallest; NaN wins. out has x's type.
extern constinit ReduceKernel amax, amin;
/// Whether any element (all elements) is not zero; NaN is not zero. out is bool.
extern constinit ReduceKernel any, all;

/// out = (sum |x|^p)^(1/p); p = infinity gives max |x|, -infinity min |x|, p = 0 the number of elements that are not
/// zero. Floating types. Two flops an element for p = 1 and 2, about 40 for a general one.
struct NormArgs {
  TensorView out, x;
  double p = 2.0;

  /// Least work of a call.
  Work work(std::string_view) const {
    return {bytes(out, x), count(x) * (p == 1 || p == 2 ? 2 : 40), x.dtype};
  }
};
extern constinit Kernel<void(const NormArgs&, Stream&)> norm;

}  // namespace levin::kernels
