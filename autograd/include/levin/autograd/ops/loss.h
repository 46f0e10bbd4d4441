#pragma once
// Losses.

#include <levin/core/tensor.h>

namespace levin {

enum class Reduction { none, mean, sum };

struct CrossEntropyOptions {
  Tensor weight{};                ///< (C); undefined means ones
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
  double label_smoothing = 0.0;
};

/// Computes -log softmax(logits)[target]. logits is (B, C) or (B, C, ...) float; target is (B) or (B, ...) int64 class
/// indices, or probabilities of the logits' shape. The operation is fused: forward never stores the softmax. Throws
/// IndexError for a label outside [0, C) that is not ignore_index.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options = {});

struct NllOptions {
  Tensor weight{};
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
};
/// Computes -log_probabilities[target]; log_probabilities (B, C, ...), target (B, ...).
Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, const NllOptions& options = {});

/// (input - target)^2 and |input - target|. Tensors of different sizes are broadcast, with a warning.
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);

struct BceOptions {
  Tensor weight{};
  Tensor pos_weight{};
  Reduction reduction = Reduction::mean;
};
/// Computes the binary cross-entropy of sigmoid(logits) against targets in [0, 1]; stable for large logits.
Tensor bce_with_logits(const Tensor& logits, const Tensor& target, const BceOptions& options = {});
/// Uses the same target for every element, e.g. bce_with_logits(d(real), 1.f).
Tensor bce_with_logits(const Tensor& logits, const Scalar& target, const BceOptions& options = {});
/// PyTorch's name of bce_with_logits.
inline Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target,
                                               const BceOptions& options = {}) {
  return bce_with_logits(logits, target, options);
}

}  // namespace levin
