#pragma once
// The SIMD functions of normalisation, chosen at run time.

#include <cmath>
#include <cstdint>

namespace levin::kernels::cpu {

/// Lines of `n` adjacent elements, `step` apart.
struct Lines {
  std::int64_t rows, step, n;
};

/// Parameters of one channel, or of each of `n` adjacent channels:
/// y = (x - mean) * scale + shift; dx = scale * (g - g_mean - (x - mean) * slope).
template <class T>
struct Channel {
  T mean, scale, shift, g_mean, slope;
};
template <class T>
struct Channels {
  static constexpr std::int64_t kMost = 64;
  T mean[kMost], scale[kMost], shift[kMost], g_mean[kMost], slope[kMost];
};

/// Returns the origin of a channel's sums: its first element, or 0 if that is not finite, which would make them NaN.
template <class T>
T origin_at(T first) {
  return std::isfinite(first) ? first : T(0);
}

template <class T>
struct NormRows {
  // A channel consists of all of the lines.
  void (*moments)(const T* x, Lines l, double origin, double* sums);  ///< of x - origin and its square
  void (*affine)(const T* x, T* y, Lines l, const Channel<T>& c);
  void (*gradient_sums)(const T* g, const T* x, Lines l, const Channel<T>& c, double* sums);  ///< of g and g (x - mean)
  void (*input_gradient)(const T* g, const T* x, T* dx, Lines l, const Channel<T>& c);

  /// Computes dx = a g + b x + c.
  void (*combined)(const T* g, const T* x, T* dx, std::int64_t n, T a, T b, T c);

  // A channel is a column; sums are (2, n), about origin_at() of each column's first element.
  void (*moments_columns)(const T* x, Lines l, double* sums);
  void (*affine_columns)(const T* x, T* y, Lines l, const Channels<T>& c);
  void (*gradient_sums_columns)(const T* g, const T* x, Lines l, const Channels<T>& c, double* sums);
  void (*input_gradient_columns)(const T* g, const T* x, T* dx, Lines l, const Channels<T>& c);

  // Layer norm of one row of n elements; weight and bias may be null.
  void (*layer)(const T* x, const T* weight, const T* bias, T* y, std::int64_t n, double eps, T* mean, T* rstd);
  /// Computes dx, unless it is null; adds g xh and g to dweight and dbias, unless those are null.
  void (*layer_backward)(const T* g, const T* x, const T* weight, T mean, T rstd, T* dx, T* dweight, T* dbias,
                         std::int64_t n);
  // The same without a mean.
  void (*rms)(const T* x, const T* weight, T* y, std::int64_t n, double eps, T* rstd);
  void (*rms_backward)(const T* g, const T* x, const T* weight, T mean, T rstd, T* dx, T* dweight, T* dbias,
                       std::int64_t n);
};

const NormRows<float>& norm_rows(float);
const NormRows<double>& norm_rows(double);

}  // namespace levin::kernels::cpu
