#pragma once
// Layer norm's rows, which all rungs share. Statistics are computed in two steps, the mean and then the squared
// deviations, never as the difference of two large sums.

#include "kernels/cuda/reduce/dispatch.h"
#include "kernels/cuda/reduce/group.cuh"

#include <levin/kernels/norm.h>

namespace levin::kernels::cuda {

/// x, y (rows, n), weight and bias (n) or null, mean and rstd (rows) or null.
template <class T>
struct LayerRows {
  using C = ComputeType<T>;
  const T *x, *weight, *bias;
  T* y;
  C *mean, *rstd;
  std::int64_t rows, n;
  double eps;

  explicit LayerRows(const LayerNormArgs& a)
      : x(elements<const T>(a.x)),
        weight(elements<const T>(a.weight)),
        bias(elements<const T>(a.bias)),
        y(elements<T>(a.y)),
        mean(elements<C>(a.mean)),
        rstd(elements<C>(a.rstd)),
        rows(a.rows),
        n(a.columns),
        eps(a.eps) {}

  __device__ double rstd_of(double squares) const { return 1.0 / ::sqrt(squares / static_cast<double>(n) + eps); }
  /// Called by one thread of the row.
  __device__ void store_statistics(std::int64_t row, double average, double r) const {
    if (mean) mean[row] = static_cast<C>(average);
    if (rstd) rstd[row] = static_cast<C>(r);
  }
  __device__ T result(T x_value, std::int64_t column, C average, C r) const {
    C v = (convert<C>(x_value) - average) * r;
    if (weight) v *= convert<C>(weight[column]);
    if (bias) v += convert<C>(bias[column]);
    return convert<T>(v);
  }
};

inline constexpr int kLayerThreads = 256;

}  // namespace levin::kernels::cuda
