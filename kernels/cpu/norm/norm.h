#pragma once
// The SIMD functions of normalisation, chosen at run time.

#include <cmath>
#include <cstdint>

namespace levin::kernels::cpu {

/// Rows of `channels` adjacent planes of `n` adjacent elements each. Rows are `step` apart.
struct ChannelPlanes {
  std::int64_t rows, step, channels, n;
};

/// Parameters of adjacent channels:
/// y = (x - mean) * scale + shift; dx = scale * (g - g_mean - (x - mean) * slope).
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

/// Functions of up to Channels::kMost channels, each of which consists of one plane of every row. Sums are (2,
/// channels).
template <class T>
struct ChannelRows {
  /// Computes the sums of x - origin and of its square, where origin is origin_at() of the channel's first element.
  void (*moments)(const T* x, ChannelPlanes p, double* sums);
  void (*affine)(const T* x, T* y, ChannelPlanes p, const Channels<T>& c);
  /// Computes the sums of g and of g (x - mean).
  void (*gradient_sums)(const T* g, const T* x, ChannelPlanes p, const Channels<T>& c, double* sums);
  void (*input_gradient)(const T* g, const T* x, T* dx, ChannelPlanes p, const Channels<T>& c);
};

template <class T>
struct NormRows {
  ChannelRows<T> planes;
  ChannelRows<T> columns;  ///< for planes of one element

  /// Computes dx = a g + b x + c.
  void (*combined)(const T* g, const T* x, T* dx, std::int64_t n, T a, T b, T c);

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
