#pragma once
// Contracts of the discrete Fourier transforms of lines. Complex numbers are pairs of float32 or float64.

#include <levin/kernels/kernel.h>

#include <cmath>

namespace levin::kernels {

/// With w(j, k) = exp(-2 pi i j k / n), or its conjugate if `inverse`, and any n of 1 or more:
///
///   fft:   out (..., n, 2)[k] = scale * sum over j of x (..., n, 2)[j] w(j, k)
///   rfft:  out (..., n / 2 + 1, 2), the first elements of fft of the real x (..., n)
///   irfft: out (..., n) = scale * sum over k of z[k] conj(w(j, k)), where z is x (..., n / 2 + 1, 2) continued by
///          z[n - k] = conj(z[k]); the imaginary parts of z[0], and of z[n / 2] for an even n, are taken as 0
///
/// All tensors are contiguous, of one dtype, and do not overlap. Bytes: every tensor once.
struct FftArgs {
  TensorView out, x;
  int64_t n = 1;
  bool inverse = false;  ///< of fft only
  double scale = 1;

  /// Returns the minimum work of a call: 5 n log2(n) per line (Cooley and Tukey's count), half of it for real ones.
  Work work(std::string_view kernel) const {
    const double length = static_cast<double>(n);
    const double lines = kernel == "fft" ? count(x) / (2 * length) : count(kernel == "rfft" ? x : out) / length;
    const double per_line = 5 * length * std::log2(length);
    return {bytes(out, x), lines * (kernel == "fft" ? per_line : per_line / 2), x.dtype};
  }
};
extern constinit Kernel<void(const FftArgs&, Stream&)> fft, rfft, irfft;

}  // namespace levin::kernels
