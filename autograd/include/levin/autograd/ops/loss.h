#pragma once
// Losses.

#include <levin/core/tensor.h>

namespace levin {

enum class Reduction { none, mean, sum };

struct CrossEntropyOptions {
  Tensor weight{};                ///< (C), undefined for ones
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
  double label_smoothing = 0.0;
};

/// -log softmax(logits)[target]; logits (B, C) or (B, C, ...) float, target (B) or (B, ...) int64 class numbers, or
/// probabilities of the logits' shape. Fused: softmax is never stored in the forward. Throws IndexError for a label
/// outside [0, C) that is not ignore_index.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options = {});

struct NllOptions {
  Tensor weight{};
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
};
/// -log_probabilities[target]; log_probabilities (B, C, ...), target (B, ...).
Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, const NllOptions& options = {});

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);

struct BceOptions {
  Tensor weight{};
  Tensor pos_weight{};
  Reduction reduction = Reduction::mean;
};
/// Binary cross-entropy of sigmoid(logits) against targets in [0, 1], stable for large logits.
Tensor bce_with_logits(const Tensor& logits, const Tensor& target, const BceOptions& options = {});
/// The same target everywhere, e.g. bce_with_logits(d(real), 1.f).
Tensor bce_with_logits(const Tensor& logits, const Scalar& target, const BceOptions& options = {});

}  // namespace levin
