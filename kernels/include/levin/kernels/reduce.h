#pragma once
// Contracts of reductions.
//
// `out` has as many axes as x, each of x's size or 1: an axis of size 1 where x has another size is reduced. Any
// strides are allowed; out and x do not overlap. Sums run in trees that depend only on the shape, so any number of
// threads gives the same bits: floating types accumulate in double, integers and bool in int64 (which wraps), and the
// result is rounded once to out's type. A reduction of no elements gives the operation's neutral element. Bytes: x
// once, out once; flops: one per element unless stated otherwise.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// Computes out = sum(x) / divisor. Floating x: any floating out. Integers and bool: out is int64 and the divisor is
/// not used.
struct SumArgs {
  TensorView out, x;
  double divisor = 1.0;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(out, x), count(x), x.dtype}; }
};
extern constinit Kernel<void(const SumArgs&, Stream&)> sum;

/// Reduces x to out, by the operation of the table.
struct ReduceArgs {
  TensorView out, x;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(out, x), count(x), x.dtype}; }
};
/// Table of a reduction without parameters.
using ReduceKernel = Kernel<void(const ReduceArgs&, Stream&)>;

// prod: the types of x and out are as for sum. amax and amin: the largest and the smallest element; NaN propagates, and
// out has x's type. any and all: true if any element (all elements) is not zero, as NaN is; out is bool.
#define LEVIN_REDUCTION_ROW(name, ...) extern constinit ReduceKernel name;
#include <levin/kernels/reduction_rows.h>

/// Computes out = (sum |x|^p)^(1/p); p = infinity gives max |x|, -infinity min |x|, p = 0 the number of nonzero
/// elements. Floating types. Two flops per element for p = 1 and 2, about 40 for any other p.
struct NormArgs {
  TensorView out, x;
  double p = 2.0;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    return {bytes(out, x), count(x) * (p == 1 || p == 2 ? 2 : 40), x.dtype};
  }
};
extern constinit Kernel<void(const NormArgs&, Stream&)> norm;

}  // namespace levin::kernels
