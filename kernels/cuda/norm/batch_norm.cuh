#pragma once
// The arithmetic of batch norm. Between the kernels, each channel's values are in scratch memory (4, C): y = (x - mean)
// * scale + shift, and dx = scale * (g - g_mean - (x - mean) * slope). T is the type of x, y and their gradients, P
// that of parameters and running statistics; C is the compute type.

#include "kernels/cuda/norm/channels.cuh"

#include <levin/kernels/norm.h>

namespace levin::kernels::cuda {

/// Returns the value that a channel's sums subtract: its first element, or 0 if that is infinite, to avoid NaN.
template <class T>
__device__ double origin_at(T first) {
  const double v = convert<double>(first);
  return v - v == 0.0 ? v : 0.0;
}

/// Sums of x - centre and of its square.
template <class T>
struct Moments {
  const T* x;
  std::int64_t spatial;
  __device__ double centre(std::int64_t channel) const { return origin_at(x[channel * spatial]); }
  __device__ void add(std::int64_t at, double centre, ChannelSums& sums) const {
    const double u = convert<double>(x[at]) - centre;
    sums.first += u;
    sums.second += u * u;
  }
};

/// Sums of g and of g (x - mean).
template <class T>
struct GradientMoments {
  const T *g, *x;
  const ComputeType<T>* mean;
  __device__ double centre(std::int64_t channel) const { return static_cast<double>(mean[channel]); }
  __device__ void add(std::int64_t at, double centre, ChannelSums& sums) const {
    const double u = convert<double>(g[at]);
    sums.first += u;
    sums.second += u * (convert<double>(x[at]) - centre);
  }
};

/// Computes the values that the elements need from a channel's sums or its running statistics.
template <class T, class P>
struct FinishForward {
  using C = ComputeType<T>;
  const T* x;
  const P *weight, *bias;
  P *running_mean, *running_var;
  C *mean, *rstd;
  C *used_mean, *scale, *shift;  ///< in scratch memory, (C) each
  std::int64_t spatial;
  double count, momentum, eps;
  bool training;

  __device__ void operator()(std::int64_t c, const ChannelSums& sums) const {
    double average, var;
    if (training) {
      average = origin_at(x[c * spatial]) + sums.first / count;
      var = (sums.second - sums.first * sums.first / count) / count;
      if (var < 0.0) var = 0.0;
      update(running_mean, c, average);
      update(running_var, c, var * count / (count - 1.0));
    } else {
      average = convert<double>(running_mean[c]);
      var = convert<double>(running_var[c]);
    }
    const double r = 1.0 / ::sqrt(var + eps);
    if (mean) mean[c] = static_cast<C>(average);
    if (rstd) rstd[c] = static_cast<C>(r);
    used_mean[c] = static_cast<C>(average);
    scale[c] = static_cast<C>(r * (weight ? convert<double>(weight[c]) : 1.0));
    shift[c] = bias ? convert<C>(bias[c]) : C(0);
  }
  __device__ void update(P* running, std::int64_t c, double value) const {
    if (!running) return;
    const double before = convert<double>(running[c]);
    running[c] = convert<P>(static_cast<C>((1.0 - momentum) * before + momentum * value));
  }
};

template <class T, class P>
struct FinishBackward {
  using C = ComputeType<T>;
  const P* weight;
  const C* rstd;
  P *dweight, *dbias;
  C *scale, *g_mean, *slope;  ///< in scratch memory, (C) each
  double count;

  __device__ void operator()(std::int64_t c, const ChannelSums& sums) const {
    const double r = static_cast<double>(rstd[c]);
    if (dweight) dweight[c] = convert<P>(static_cast<C>(sums.second * r));
    if (dbias) dbias[c] = convert<P>(static_cast<C>(sums.first));
    scale[c] = static_cast<C>(r * (weight ? convert<double>(weight[c]) : 1.0));
    g_mean[c] = static_cast<C>(sums.first / count);
    slope[c] = static_cast<C>(sums.second / count * r * r);
  }
};

template <class T>
struct MapForward {
  using C = ComputeType<T>;
  const T* x;
  T* y;
  const C *mean, *scale, *shift;
  template <int kWidth>
  __device__ void run(std::int64_t at, std::int64_t c) const {
    auto pack = pack_at<kWidth>(x + at);
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kWidth; ++i) pack[i] = convert<T>((convert<C>(pack[i]) - mean[c]) * scale[c] + shift[c]);
    pack_at<kWidth>(y + at) = pack;
  }
};

template <class T>
struct MapBackward {
  using C = ComputeType<T>;
  const T *g, *x;
  T* dx;
  const C *mean, *scale, *g_mean, *slope;
  template <int kWidth>
  __device__ void run(std::int64_t at, std::int64_t c) const {
    auto pack = pack_at<kWidth>(g + at);
    const auto xs = pack_at<kWidth>(x + at);
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      const C centred = convert<C>(xs[i]) - mean[c];
      pack[i] = convert<T>(scale[c] * (convert<C>(pack[i]) - g_mean[c] - centred * slope[c]));
    }
    pack_at<kWidth>(dx + at) = pack;
  }
};

}  // namespace levin::kernels::cuda
