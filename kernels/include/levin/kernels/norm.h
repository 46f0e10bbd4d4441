#pragma once
// Contracts of normalisation: batch norm over (B, S) of x (B, C, S), layer norm over the last axis of x (M, N). All
// tensors are contiguous and of one floating type, f32 or f64 on the CPU, unless stated otherwise; with 16-bit floats
// mean and rstd are f32. Sums accumulate in double.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// Computes y = (x - mean) * rstd * weight + bias, rstd = 1 / sqrt(var + eps). x and y are (batch, channels, spatial),
/// all others (channels); weight, bias and the running statistics may be absent (null pointer). With `training`, mean
/// and var (biased) are those of the batch, which are written to mean and rstd, and running_mean and running_var become
/// running + momentum * (batch - running), with the unbiased variance. Otherwise the running statistics are used, and
/// written to mean and rstd unless these are absent.
/// weight, bias and the running statistics may be f32 with a 16-bit x, as under autocast. Bytes: x and y once; about 8
/// flops per element.
struct BatchNormArgs {
  TensorView y, x, weight, bias, running_mean, running_var, mean, rstd;
  int64_t batch = 1, channels = 1, spatial = 1;
  double momentum = 0.1, eps = 1e-5;
  bool training = true;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(x, y), 8 * count(x), x.dtype}; }
};
extern constinit Kernel<void(const BatchNormArgs&, Stream&)> batch_norm;

/// Gradients of batch_norm in training, of the same (batch, channels, spatial), with xh = (x - mean) rstd and averages
/// over all but the channels:
/// dx = weight rstd (g - mean(g) - xh mean(g xh)), dweight = sum g xh, dbias = sum g; each may be absent. dweight and
/// dbias are of weight's type. Bytes: x and g once, dx once; about 10 flops per element.
struct BatchNormBackwardArgs {
  TensorView dx, dweight, dbias, g, x, weight, mean, rstd;
  int64_t batch = 1, channels = 1, spatial = 1;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    return {bytes(x, g, dx), 10 * count(x), x.dtype};
  }
};
extern constinit Kernel<void(const BatchNormBackwardArgs&, Stream&)> batch_norm_backward;

/// Computes y = (x - mean) * rstd * weight + bias with the statistics of each row, rstd = 1 / sqrt(var + eps) with the
/// biased variance. x, y (rows, columns), weight and bias (columns) or absent; mean and rstd (rows) are written unless
/// absent. Bytes: x and y once; about 8 flops per element.
struct LayerNormArgs {
  TensorView y, x, weight, bias, mean, rstd;
  int64_t rows = 1, columns = 1;
  double eps = 1e-5;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(x, y), 8 * count(x), x.dtype}; }
};
extern constinit Kernel<void(const LayerNormArgs&, Stream&)> layer_norm;

/// With h = g weight, computes
/// dx = rstd (h - mean(h) - xh mean(h xh)) over each row, dweight = sum over rows of g xh, dbias = sum over rows of g;
/// each may be absent. Shapes are those of layer_norm with the same rows and columns. Bytes: x and g once, dx once;
/// about 12 flops per element.
struct LayerNormBackwardArgs {
  TensorView dx, dweight, dbias, g, x, weight, mean, rstd;
  int64_t rows = 1, columns = 1;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    return {bytes(x, g, dx), 12 * count(x), x.dtype};
  }
};
extern constinit Kernel<void(const LayerNormBackwardArgs&, Stream&)> layer_norm_backward;

/// Computes y = (x - mean) * rstd * weight + bias with the statistics of each group, rstd = 1 / sqrt(var + eps) with
/// the biased variance. x and y are (batch, groups, channels, spatial), weight and bias (groups, channels) or absent;
/// mean and rstd (batch, groups) are written unless absent. Bytes: x and y once; about 8 flops per element.
struct GroupNormArgs {
  TensorView y, x, weight, bias, mean, rstd;
  int64_t batch = 1, groups = 1, channels = 1, spatial = 1;
  double eps = 1e-5;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(x, y), 8 * count(x), x.dtype}; }
};
extern constinit Kernel<void(const GroupNormArgs&, Stream&)> group_norm;

/// With h = g weight, xh = (x - mean) rstd and averages over a group, computes dx = rstd (h - mean(h) - xh mean(h xh)),
/// and over each channel of each sample dweight = sum g xh and dbias = sum g, both (batch, groups, channels). dx may be
/// absent. Shapes are those of group_norm, with `spatial` elements of a channel. Bytes: x and g once, dx once; about 10
/// flops per element.
struct GroupNormBackwardArgs {
  TensorView dx, dweight, dbias, g, x, weight, mean, rstd;
  int64_t batch = 1, groups = 1, channels = 1, spatial = 1;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(x, g, dx), 10 * count(x), x.dtype}; }
};
extern constinit Kernel<void(const GroupNormBackwardArgs&, Stream&)> group_norm_backward;

/// Computes y = x * rstd * weight with rstd = 1 / sqrt(mean(x^2) + eps) over each row. x, y (rows, columns), weight
/// (columns) or absent; rstd (rows) is written unless absent. Bytes: x and y once; about 5 flops per element.
struct RmsNormArgs {
  TensorView y, x, weight, rstd;
  int64_t rows = 1, columns = 1;
  double eps = 1e-5;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(x, y), 5 * count(x), x.dtype}; }
};
extern constinit Kernel<void(const RmsNormArgs&, Stream&)> rms_norm;

/// With h = g weight and xh = x rstd, computes dx = rstd (h - xh mean(h xh)) over each row and dweight = sum over rows
/// of g xh; each may be absent. Tensors are (rows, columns), weight and dweight (columns), rstd (rows). Bytes: x and g
/// once, dx once; about 9 flops per element.
struct RmsNormBackwardArgs {
  TensorView dx, dweight, g, x, weight, rstd;
  int64_t rows = 1, columns = 1;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(x, g, dx), 9 * count(x), x.dtype}; }
};
extern constinit Kernel<void(const RmsNormBackwardArgs&, Stream&)> rms_norm_backward;

}  // namespace levin::kernels
