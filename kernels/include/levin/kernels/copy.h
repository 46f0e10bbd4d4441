#pragma once
// Contract of copying with conversion.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// Copies x to out, converted to out's type; x broadcasts to out's sizes. Any types and strides; out and x do not
/// overlap. Floating values are truncated towards zero for integers and compared with zero for bool. Bytes: x once, out
/// once.
struct CopyArgs {
  TensorView out, x;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(out, x), 0, out.dtype}; }
};

extern constinit Kernel<void(const CopyArgs&, Stream&)> copy;

}  // namespace levin::kernels
