#pragma once
// Contracts of kernels that create values. Bytes: out once.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// Sets every element of out (any type and strides) to `value`, a TensorView::number of any type.
struct FillArgs {
  TensorView out, value;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(out), 0, out.dtype}; }
};
extern constinit Kernel<void(const FillArgs&, Stream&)> fill;

/// Writes out[i] = start + i * step; out (n) is contiguous and of any type but bool. Integer types use integer_start
/// and integer_step, floating types start and step.
struct RangeArgs {
  TensorView out;
  int64_t integer_start = 0, integer_step = 1;
  double start = 0.0, step = 1.0;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(out), 2 * count(out), out.dtype}; }
};
extern constinit Kernel<void(const RangeArgs&, Stream&)> arange;

/// Writes n numbers from start to end to out (n), contiguous, of any type but bool; the second half counts back from
/// end, so that both ends are exact.
struct LinspaceArgs {
  TensorView out;
  double start = 0.0, end = 1.0;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(out), 2 * count(out), out.dtype}; }
};
extern constinit Kernel<void(const LinspaceArgs&, Stream&)> linspace;

}  // namespace levin::kernels
