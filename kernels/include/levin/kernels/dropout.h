#pragma once
// Contract of dropout (Srivastava et al. 2014, inverted).

#include <levin/core/generator.h>
#include <levin/kernels/kernel.h>

#include <algorithm>

namespace levin::kernels {

/// Returns the number below which 24 random bits drop an element: u < p, decided by integers.
inline std::uint32_t dropout_limit(double p) { return static_cast<std::uint32_t>(std::min(p * 0x1p24, 0x1p24)); }
/// Returns the factor of the elements that stay.
inline double dropout_factor(double p) { return p < 1.0 ? 1.0 / (1.0 - p) : 0.0; }

/// Computes out = x / (1 - p) where u >= p, else 0, with u of 24 bits from word i of the sequence that begins at
/// `state` (see random.h). The mask is never stored: the same call on the gradient is the backward. Floating types; out
/// and x are contiguous and may be the same memory. Bytes: x once, out once.
struct DropoutArgs {
  TensorView out, x;
  PhiloxState state;
  double p = 0.5;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(out, x), 2 * count(x), x.dtype}; }
};
extern constinit Kernel<void(const DropoutArgs&, Stream&)> dropout;

}  // namespace levin::kernels
