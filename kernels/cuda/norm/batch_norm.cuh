#pragma once
// The arithmetic of batch norm. Between the kernels, each channel's numbers lie in scratch memory (4, C):
// y = (x - mean) * scale + shift, and dx = scale * (g - g_mean - (x - mean) * slope).

#include "kernels/cuda/norm/channels.cuh"

#include <levin/kernels/norm.h>

namespace levin::kernels::cuda {

template <class T>
T* pointer_or_null(const TensorView& v) {
  return v.pointer ? v.data<T>() : nullptr;
}

/// Sums of x - centre and of its square, about the channel's first element.
template <class T>
struct Moments {
  const T* x;
  std::int64_t spatial;
  __device__ double centre(std::int64_t channel) const { return static_cast<double>(x[channel * spatial]); }
  __device__ void add(std::int64_t at, double centre, ChannelSums& sums) const {
    const double u = static_cast<double>(x[at]) - centre;
    sums.first += u;
    sums.second += u * u;
  }
};

/// Sums of g and of g (x - mean).
template <class T>
struct GradientMoments {
  const T *g, *x, *mean;
  __device__ double centre(std::int64_t channel) const { return static_cast<double>(mean[channel]); }
  __device__ void add(std::int64_t at, double centre, ChannelSums& sums) const {
    const double u = static_cast<double>(g[at]);
    sums.first += u;
    sums.second += u * (static_cast<double>(x[at]) - centre);
  }
};

/// From a channel's sums, or from its running statistics, to what the elements need.
template <class T>
struct FinishForward {
  const T *x, *weight, *bias;
  T *running_mean, *running_var, *mean, *rstd;
  T *used_mean, *scale, *shift;  ///< scratch, (C) each
  std::int64_t spatial;
  double count, momentum, eps;
  bool training;

  __device__ void operator()(std::int64_t c, const ChannelSums& sums) const {
    double average, var;
    if (training) {
      average = static_cast<double>(x[c * spatial]) + sums.first / count;
      var = (sums.second - sums.first * sums.first / count) / count;
      if (var < 0.0) var = 0.0;
      update(running_mean, c, average);
      update(running_var, c, var * count / (count - 1.0));
    } else {
      average = static_cast<double>(running_mean[c]);
      var = static_cast<double>(running_var[c]);
    }
    const double r = 1.0 / sqrt(var + eps);
    if (mean) mean[c] = static_cast<T>(average);
    if (rstd) rstd[c] = static_cast<T>(r);
    used_mean[c] = static_cast<T>(average);
    scale[c] = static_cast<T>(r * (weight ? static_cast<double>(weight[c]) : 1.0));
    shift[c] = bias ? bias[c] : T(0);
  }
  __device__ void update(T* running, std::int64_t c, double value) const {
    if (running) running[c] += static_cast<T>(momentum * (value - static_cast<double>(running[c])));
  }
};

template <class T>
struct FinishBackward {
  const T *weight, *rstd;
  T *dweight, *dbias;
  T *scale, *g_mean, *slope;  ///< scratch, (C) each
  double count;

  __device__ void operator()(std::int64_t c, const ChannelSums& sums) const {
    const double r = static_cast<double>(rstd[c]);
    if (dweight) dweight[c] = static_cast<T>(sums.second * r);
    if (dbias) dbias[c] = static_cast<T>(sums.first);
    scale[c] = static_cast<T>(r * (weight ? static_cast<double>(weight[c]) : 1.0));
    g_mean[c] = static_cast<T>(sums.first / count);
    slope[c] = static_cast<T>(sums.second / count * r * r);
  }
};

template <class T>
struct MapForward {
  const T* x;
  T* y;
  const T *mean, *scale, *shift;
  template <int kWidth>
  __device__ void run(std::int64_t at, std::int64_t c) const {
    auto pack = *reinterpret_cast<const Pack<T, kWidth>*>(x + at);
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kWidth; ++i) pack[i] = (pack[i] - mean[c]) * scale[c] + shift[c];
    *reinterpret_cast<Pack<T, kWidth>*>(y + at) = pack;
  }
};

template <class T>
struct MapBackward {
  const T *g, *x;
  T* dx;
  const T *mean, *scale, *g_mean, *slope;
  template <int kWidth>
  __device__ void run(std::int64_t at, std::int64_t c) const {
    auto pack = *reinterpret_cast<const Pack<T, kWidth>*>(g + at);
    const auto xs = *reinterpret_cast<const Pack<T, kWidth>*>(x + at);
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kWidth; ++i) pack[i] = scale[c] * (pack[i] - g_mean[c] - (xs[i] - mean[c]) * slope[c]);
    *reinterpret_cast<Pack<T, kWidth>*>(dx + at) = pack;
  }
};

}  // namespace levin::kernels::cuda
