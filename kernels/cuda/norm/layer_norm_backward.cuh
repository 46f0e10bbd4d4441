#pragma once
// Gradients of layer norm. With xh = (x - mean) rstd and h = g weight:
// dx = rstd (h - mean(h) - xh mean(h xh)) over each row, dweight = sum of g xh and dbias = sum of g over the rows.

#include "kernels/cuda/reduce/dispatch.h"
#include "kernels/cuda/reduce/group.cuh"

#include <levin/kernels/norm.h>

namespace levin::kernels::cuda {

template <class T>
struct LayerGradient {
  using C = ComputeType<T>;
  const T *g, *x, *weight;
  const C *mean, *rstd;
  T* dx;       ///< (rows, n) or null
  C* partial;  ///< (blocks, 2, n): sums of g xh and of g over a block's rows; null if neither is needed
  std::int64_t rows, n;
  std::int64_t each;  ///< rows per block

  __device__ C scaled(C g_value, std::int64_t column) const {
    return weight ? g_value * convert<C>(weight[column]) : g_value;
  }
  __device__ std::int64_t first_row() const { return static_cast<std::int64_t>(blockIdx.x) * each; }
  __device__ std::int64_t end_row() const { return first_row() + each < rows ? first_row() + each : rows; }
};

/// Computes the means of h and of h xh over the row from each thread's sums, with two barriers.
__device__ inline void mean_of_row(double& h, double& h_xh, std::int64_t n) {
  LEVIN_SHARED(double, first, 32);
  LEVIN_SHARED(double, second, 32);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  h = warp_reduce(h, Plus{});
  h_xh = warp_reduce(h_xh, Plus{});
  if (lane == 0) first[warp] = h, second[warp] = h_xh;
  __syncthreads();
  h = warp_reduce(lane < warps ? first[lane] : 0.0, Plus{}) / static_cast<double>(n);
  h_xh = warp_reduce(lane < warps ? second[lane] : 0.0, Plus{}) / static_cast<double>(n);
  __syncthreads();
}

inline constexpr int kGradientThreads = 512;

/// A block loops over its rows; a thread has the same columns in each, so that it accumulates dweight and dbias in
/// registers, and x and g are read once. Pack p of thread t holds kWidth columns from (p * threads + t) * kWidth.
template <class T, int kWidth, int kElements>
__global__ void __launch_bounds__(kGradientThreads) layer_norm_gradient(LayerGradient<T> l) {
  using Elements = Pack<T, kWidth>;
  using C = ComputeType<T>;
  constexpr int kPacks = kElements / kWidth;
  const int n = static_cast<int>(l.n), first = static_cast<int>(threadIdx.x) * kWidth;
  const int step = static_cast<int>(blockDim.x) * kWidth;
  C dweight[kPacks][kWidth] = {}, dbias[kPacks][kWidth] = {};
  for (std::int64_t row = l.first_row(); row < l.end_row(); ++row) {
    const C mean = l.mean[row], rstd = l.rstd[row];
    C gs[kPacks][kWidth], xs[kPacks][kWidth];  // h and xh
    Elements packs[kPacks][2];                 // g and x
    LEVIN_PRAGMA_UNROLL
    for (int p = 0; p < kPacks; ++p) {
      if (first + p * step >= n) continue;
      packs[p][0] = vector_at<Elements>(l.g + row * l.n + first + p * step);
      packs[p][1] = vector_at<Elements>(l.x + row * l.n + first + p * step);
    }
    double h_mean = 0.0, slope = 0.0;
    LEVIN_PRAGMA_UNROLL
    for (int p = 0; p < kPacks; ++p) {
      const int at = first + p * step;
      if (at >= n) continue;
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kWidth; ++i) {
        const C g = convert<C>(packs[p][0][i]);
        xs[p][i] = (convert<C>(packs[p][1][i]) - mean) * rstd;
        dweight[p][i] += g * xs[p][i];
        dbias[p][i] += g;
        gs[p][i] = l.scaled(g, at + i);
        h_mean += static_cast<double>(gs[p][i]);
        slope += static_cast<double>(gs[p][i] * xs[p][i]);
      }
    }
    if (!l.dx) continue;
    mean_of_row(h_mean, slope, l.n);
    LEVIN_PRAGMA_UNROLL
    for (int p = 0; p < kPacks; ++p) {
      if (first + p * step >= n) continue;
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kWidth; ++i) {
        packs[p][0][i] = convert<T>(rstd * (gs[p][i] - static_cast<C>(h_mean) - xs[p][i] * static_cast<C>(slope)));
      }
      vector_at<Elements>(l.dx + row * l.n + first + p * step) = packs[p][0];
    }
  }
  if (!l.partial) return;
  C* const partial = l.partial + static_cast<std::int64_t>(blockIdx.x) * 2 * l.n;
  LEVIN_PRAGMA_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      const int at = first + p * step + i;
      if (at < n) partial[at] = dweight[p][i], partial[l.n + at] = dbias[p][i];
    }
  }
}

/// For rows that do not fit in registers: a block computes dx of a row, reading it twice.
template <class T>
__global__ void layer_norm_gradient_rows(LayerGradient<T> l) {
  using C = ComputeType<T>;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x);
  const C mean = l.mean[row], rstd = l.rstd[row];
  const T *const g = l.g + row * l.n, *const x = l.x + row * l.n;
  double h_mean = 0.0, slope = 0.0;
  for (std::int64_t i = static_cast<int>(threadIdx.x); i < l.n; i += kGradientThreads) {
    const C h = l.scaled(convert<C>(g[i]), i);
    h_mean += static_cast<double>(h);
    slope += static_cast<double>(h * ((convert<C>(x[i]) - mean) * rstd));
  }
  mean_of_row(h_mean, slope, l.n);
  for (std::int64_t i = static_cast<int>(threadIdx.x); i < l.n; i += kGradientThreads) {
    const C h = l.scaled(convert<C>(g[i]), i), xh = (convert<C>(x[i]) - mean) * rstd;
    l.dx[row * l.n + i] = convert<T>(rstd * (h - static_cast<C>(h_mean) - xh * static_cast<C>(slope)));
  }
}

/// For the same rows: partial sums of dweight and dbias, one thread per column; blocks are (rows, columns).
template <class T>
__global__ void layer_norm_gradient_columns(LayerGradient<T> l) {
  using C = ComputeType<T>;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
  if (column >= l.n) return;
  C dweight = C(0), dbias = C(0);
  for (std::int64_t row = l.first_row(); row < l.end_row(); ++row) {
    const C g = convert<C>(l.g[row * l.n + column]);
    dweight += g * ((convert<C>(l.x[row * l.n + column]) - l.mean[row]) * l.rstd[row]);
    dbias += g;
  }
  C* const partial = l.partial + static_cast<std::int64_t>(blockIdx.x) * 2 * l.n;
  partial[column] = dweight;
  partial[l.n + column] = dbias;
}

}  // namespace levin::kernels::cuda
