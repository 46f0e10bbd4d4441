#pragma once
// Contracts of values that come from nothing. Bytes: out once.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// Every element of out (any type and strides) becomes `value`, a TensorView::number of any type.
struct FillArgs {
  TensorView out, value;

  /// Least work of a call.
  Work work(std::string_view) const { return {bytes(out), 0, out.dtype}; }
};
extern constinit Kernel<void(const FillArgs&, Stream&)> fill;

/// out (n), contiguous, any type but bool: out[i] = start + i * step. Integers use the first pair.
struct RangeArgs {
  TensorView out;
  int64_t integer_start = 0, integer_step = 1;
  double start = 0.0, step = 1.0;

  /// Least work of a call.
  Work work(std::string_view) const { return {bytes(out), 2 * count(out), out.dtype}; }
};
extern constinit Kernel<void(const RangeArgs&, Stream&)> arange;

/// out (n), contiguous, any type but bool: n numbers from start to end; the second half counts back from end, so that
/// both ends are exact.
struct LinspaceArgs {
  TensorView out;
  double start = 0.0, end = 1.0;

  /// Least work of a call.
  Work work(std::string_view) const { return {bytes(out), 2 * count(out), out.dtype}; }
};
extern constinit Kernel<void(const LinspaceArgs&, Stream&)> linspace;

}  // namespace levin::kernels
