#pragma once
// Normalisation.

#include <levin/core/tensor.h>

namespace levin {

/// Arguments of batch_norm.
struct BatchNormOptions {
  bool training = false;  ///< uses the batch's statistics and updates the running ones
  double momentum = 0.1;  ///< weight of the batch in running = (1 - momentum) running + momentum batch
  double eps = 1e-5;      ///< added to the variance
};

/// Computes (x - mean) / sqrt(var + eps) * weight + bias per channel; x is (B, C, ...), the others are (C) or
/// undefined. In training, the statistics are those of the batch (biased variance), and running_mean and running_var
/// are updated in place (unbiased variance); otherwise the running statistics are used. The others have x's dtype, or
/// float32 with a 16-bit x. Throws ShapeError and DTypeError for tensors that do not fit, and ValueError for an
/// evaluation without running statistics and for training with one value per channel. Ioffe & Szegedy 2015.
Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight = {},
                  const Tensor& bias = {}, const BatchNormOptions& options = {});

/// Computes (x - mean) / sqrt(var + eps) * weight + bias over the last dimensions, whose sizes are `normalized_shape`,
/// with the biased variance; weight and bias have that shape or are undefined. Ba et al. 2016.
Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);

/// As layer_norm, over groups of C / num_groups channels of each sample of x (B, C, ...); weight and bias are (C) or
/// undefined. Wu & He 2018.
Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);

/// As layer_norm, over each channel of each sample of x (B, C, ...); weight and bias are (C) or undefined. Ulyanov et
/// al. 2016.
Tensor instance_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);

/// Divides by the root of the mean square over the last dimensions, whose sizes are normalized_shape; weight has that
/// shape or is undefined. eps defaults to the spacing of x's type at 1. Zhang & Sennrich 2019.
Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {},
                std::optional<double> eps = std::nullopt);

/// Divides by (k + alpha / size * sum of squares over `size` neighbouring channels)^beta; x is (B, C, ...).
/// Krizhevsky et al. 2012.
Tensor local_response_norm(const Tensor& x, int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1.0);

/// Divides x by max(p-norm along axis, eps).
Tensor normalize(const Tensor& x, double p = 2.0, int64_t axis = 1, double eps = 1e-12);

}  // namespace levin
