#pragma once
// Normalisation.

#include <levin/core/tensor.h>

namespace levin {

struct BatchNormOptions {
  bool training = false;
  double momentum = 0.1;
  double eps = 1e-5;
};

/// Computes (x - mean) / sqrt(var + eps) * weight + bias per channel; x is (B, C, ...), the others are (C) or
/// undefined. In training, the statistics are those of the batch (biased variance), and running_mean and running_var
/// are updated in place (unbiased variance); otherwise the running statistics are used. The others have x's dtype, or
/// float32 with a 16-bit x. Throws ShapeError and DTypeError for tensors that do not fit, and ValueError for an
/// evaluation without running statistics and for training with one value per channel. Ioffe & Szegedy 2015.
Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight = {},
                  const Tensor& bias = {}, const BatchNormOptions& options = {});

/// Normalises over the last dimensions, whose sizes are `normalized_shape`; weight and bias have that shape or are
/// undefined. Ba et al. 2016.
Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);

}  // namespace levin
