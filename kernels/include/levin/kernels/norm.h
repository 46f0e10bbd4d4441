#pragma once
// Contracts of normalisation: batch norm over (B, S) of x (B, C, S), layer norm over the last axis of x (M, N).
// All tensors are contiguous and of one floating type, on the cpu f32 or f64, unless said; beside 16-bit floats mean
// and rstd are f32. Sums accumulate in double.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// y = (x - mean) * rstd * weight + bias, rstd = 1 / sqrt(var + eps). x, y (B, C, S), all others (C); weight, bias and
/// the running ones may be absent (null pointer). With `training`, mean and var (biased) are the batch's, which are
/// written to mean and rstd, and running += momentum * (batch - running), where the variance enters unbiased. Without,
/// the running ones are used and mean and rstd, unless absent, receive them. weight, bias and the running ones may be
/// f32 beside a 16-bit x, as under autocast. Bytes: x and y once; about 8 flops an element.
struct BatchNormArgs {
  TensorView y, x, weight, bias, running_mean, running_var, mean, rstd;
  int64_t batch = 1, channels = 1, spatial = 1;
  double momentum = 0.1, eps = 1e-5;
  bool training = true;

  /// Least work of a call.
  Work work(std::string_view) const { return {bytes(x, y), 8 * count(x), x.dtype}; }
};
extern constinit Kernel<void(const BatchNormArgs&, Stream&)> batch_norm;

/// Gradients of batch_norm in training, with xh = (x - mean) rstd and averages over (B, S):
/// dx = weight rstd (g - mean(g) - xh mean(g xh)), dweight = sum g xh, dbias = sum g; each may be absent. dweight and
/// dbias are of weight's type.
/// Bytes: x and g once, dx once; about 10 flops an element.
struct BatchNormBackwardArgs {
  TensorView dx, dweight, dbias, g, x, weight, mean, rstd;
  int64_t batch = 1, channels = 1, spatial = 1;

  /// Least work of a call.
  Work work(std::string_view) const {
    return {bytes(x, g, dx), 10 * count(x), x.dtype};
  }
};
extern constinit Kernel<void(const BatchNormBackwardArgs&, Stream&)> batch_norm_backward;

/// y = (x - mean) * rstd * weight + bias with the statistics of each row. x, y (M, N), weight and bias (N) or absent,
/// mean and rstd (M) are written unless absent. Bytes: x and y once; about 8 flops an element.
struct LayerNormArgs {
  TensorView y, x, weight, bias, mean, rstd;
  int64_t rows = 1, columns = 1;
  double eps = 1e-5;

  /// Least work of a call.
  Work work(std::string_view) const { return {bytes(x, y), 8 * count(x), x.dtype}; }
};
extern constinit Kernel<void(const LayerNormArgs&, Stream&)> layer_norm;

/// With h = g weight: dx = rstd (h - mean(h) - xh mean(h xh)) over each row, dweight = sum over rows of g xh, dbias =
/// sum over rows of g; each may be absent. Bytes: x and g once, dx once; about 12 flops an element.
struct LayerNormBackwardArgs {
  TensorView dx, dweight, dbias, g, x, weight, mean, rstd;
  int64_t rows = 1, columns = 1;

  /// Least work of a call.
  Work work(std::string_view) const {
    return {bytes(x, g, dx), 12 * count(x), x.dtype};
  }
};
extern constinit Kernel<void(const LayerNormBackwardArgs&, Stream&)> layer_norm_backward;

}  // namespace levin::kernels
