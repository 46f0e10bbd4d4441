#pragma once
// Contracts of operations that process one axis in order, and of sorting. All tensors are contiguous and treated as
// (outer, n, inner): `outer` is the product of the sizes before the axis, and `inner` of those after it. Bytes: every
// tensor once, unless stated.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// Computes indices (outer, inner) int64 = the first position along n of the largest (smallest) element, or of the
/// first NaN if there is one, and values (outer, inner) = that element, unless absent (null pointer). x is of any type;
/// n is at least 1.
struct ArgReduceArgs {
  TensorView values, indices, x;
  int64_t outer = 1, n = 1, inner = 1;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    return {bytes(values, indices, x), count(x), x.dtype};
  }
};
extern constinit Kernel<void(const ArgReduceArgs&, Stream&)> argmax, argmin;

/// Computes, in tensors (outer, n, inner), out[o, i, j] = the sum (cumsum) or product (cumprod) over k <= i of
/// x[o, k, j], or over k >= i if `reverse`. x is of a floating type with out of the same type (accumulated in double),
/// or of an integer type or bool with out int64. out may be x.
struct CumulativeArgs {
  TensorView out, x;
  int64_t outer = 1, n = 1, inner = 1;
  bool reverse = false;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(out, x), count(x), x.dtype}; }
};
extern constinit Kernel<void(const CumulativeArgs&, Stream&)> cumsum, cumprod;

/// Computes, in tensors (outer, n, inner), values[o, i, j] = the largest (smallest) of x[o, k, j] over k <= i and
/// indices[o, i, j] int64 = its position along n: the last one of equal elements, and the last NaN if there is one. Any
/// type.
struct CumulativeExtremumArgs {
  TensorView values, indices, x;
  int64_t outer = 1, n = 1, inner = 1;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(values, indices, x), count(x), x.dtype}; }
};
extern constinit Kernel<void(const CumulativeExtremumArgs&, Stream&)> cummax, cummin;

/// Solves a linear recurrence along n of tensors (outer, n, inner):
/// out[i] = b[i] + a[i] out[i - 1] with out[0] = b[0], or if `reverse` from the end
/// out[i] = b[i] + a[i + 1] out[i + 1] with out[n - 1] = b[n - 1]; a[0] has no effect. As maps of b, the two directions
/// are each other's transpose. Floating types, accumulated in double.
struct RecurrenceArgs {
  TensorView out, a, b;
  int64_t outer = 1, n = 1, inner = 1;
  bool reverse = false;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(out, a, b), 2 * count(out), out.dtype}; }
};
extern constinit Kernel<void(const RecurrenceArgs&, Stream&)> recurrence;

/// Returns the elements of rank `from` to k - 1 of each line along n in ascending or descending order: values (outer,
/// k - from, inner) of x's type and indices (outer, k - from, inner) int64, their positions in the line. Ties keep the
/// order of x; NaN is larger than everything, and all NaNs are ties, as are both zeros. Any type. sort needs k = n and
/// from = 0. Bytes: x once, both outputs once; about 4 passes over 8 bytes of workspace per element.
struct SortArgs {
  TensorView values, indices, x;
  int64_t outer = 1, n = 1, inner = 1, k = 1;
  bool descending = false;
  int64_t from = 0;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(x, values, indices), 0, x.dtype}; }
};
extern constinit Kernel<void(const SortArgs&, Stream&)> sort, topk;

}  // namespace levin::kernels
