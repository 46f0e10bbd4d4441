#pragma once
// Layer norm's rows, which all rungs share. Statistics are taken in two steps, the mean and then the squares of what is
// left, never as the difference of two large sums.

#include "kernels/cuda/reduce/group.cuh"

#include <levin/kernels/norm.h>

namespace levin::kernels::cuda {

/// x, y (rows, n), weight and bias (n) or null, mean and rstd (rows) or null.
template <class T>
struct LayerRows {
  const T *x, *weight, *bias;
  T *y, *mean, *rstd;
  std::int64_t rows, n;
  double eps;

  explicit LayerRows(const LayerNormArgs& a)
      : x(a.x.data<T>()),
        weight(a.weight.pointer ? a.weight.data<T>() : nullptr),
        bias(a.bias.pointer ? a.bias.data<T>() : nullptr),
        y(a.y.data<T>()),
        mean(a.mean.pointer ? a.mean.data<T>() : nullptr),
        rstd(a.rstd.pointer ? a.rstd.data<T>() : nullptr),
        rows(a.rows),
        n(a.columns),
        eps(a.eps) {}

  __device__ double rstd_of(double squares) const { return 1.0 / sqrt(squares / static_cast<double>(n) + eps); }
  /// By one thread of the row.
  __device__ void store_statistics(std::int64_t row, double average, double r) const {
    if (mean) mean[row] = static_cast<T>(average);
    if (rstd) rstd[row] = static_cast<T>(r);
  }
  __device__ T result(T x_value, std::int64_t column, T average, T r) const {
    T v = (x_value - average) * r;
    if (weight) v *= weight[column];
    if (bias) v += bias[column];
    return v;
  }
};

inline constexpr int kLayerThreads = 256;

}  // namespace levin::kernels::cuda
