#pragma once
// Losses.

#include <levin/core/tensor.h>

namespace levin {

/// How a loss is reduced: not at all, or to the mean or the sum, which have shape ().
enum class Reduction { none, mean, sum };

/// Arguments of cross_entropy.
struct CrossEntropyOptions {
  Tensor weight{};                        ///< (C), of the logits' dtype; undefined means ones
  int64_t ignore_index = -100;            ///< samples with this label have no loss and do not count in the mean
  Reduction reduction = Reduction::mean;  ///< the mean is weighted by the labels' weights
  double label_smoothing = 0.0;           ///< in [0, 1]: this share of the target goes to all classes evenly
};

/// Computes -log softmax(logits)[target]. logits is (B, C), (B, C, ...) or (C) float; target is (B), (B, ...) or ()
/// class indices of int64 or int32, or probabilities of the logits' shape. The operation is fused: forward never stores
/// the softmax. Throws IndexError for a label outside [0, C) that is not ignore_index, and ShapeError, DTypeError and
/// ValueError for arguments that do not fit.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options = {});

/// Arguments of nll_loss: weight, ignore_index and reduction as in CrossEntropyOptions.
struct NllOptions {
  Tensor weight{};
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
};
/// Computes -log_probabilities[target]; log_probabilities is (B, C, ...) or (C) float, target (B, ...) or () of int64
/// or int32.
Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, const NllOptions& options = {});

/// (input - target)^2 and |input - target|. Tensors of different sizes are broadcast, with a warning.
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);

/// Arguments of bce_with_logits.
struct BceOptions {
  Tensor weight{};                        ///< factor of each loss, which broadcasts; undefined means ones
  Tensor pos_weight{};                    ///< factor of the target's part of the loss, which broadcasts, e.g. (C)
  Reduction reduction = Reduction::mean;  ///< over all elements
};
/// Computes the binary cross-entropy of sigmoid(logits) against targets in [0, 1] of the same size; stable for large
/// logits. Throws ShapeError for targets of another size.
Tensor bce_with_logits(const Tensor& logits, const Tensor& target, const BceOptions& options = {});
/// Uses the same target for every element, e.g. bce_with_logits(d(real), 1.f).
Tensor bce_with_logits(const Tensor& logits, const Scalar& target, const BceOptions& options = {});
/// PyTorch's name of bce_with_logits.
inline Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target,
                                               const BceOptions& options = {}) {
  return bce_with_logits(logits, target, options);
}
/// Computes -target log(input) - (1 - target) log(1 - input) for probabilities `input` in [0, 1] and targets of the
/// same size, times weight, which broadcasts; logarithms are clamped at -100.
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                            Reduction reduction = Reduction::mean);

/// 0.5 d^2 / beta for |d| < beta, else |d| - 0.5 beta, of the difference d (Girshick 2015); beta 0 is l1_loss.
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean,
                      double beta = 1.0);
/// 0.5 d^2 for |d| < delta, else delta (|d| - 0.5 delta) (Huber 1964).
Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean, double delta = 1.0);

/// Arguments of kl_div.
struct KlDivOptions {
  Reduction reduction = Reduction::mean;  ///< over all elements
  bool log_target = false;  ///< the target holds log-probabilities
  bool batchmean = false;   ///< divides the sum by the first size, which is the mathematical mean; overrides reduction
};
/// target (log target - input), where input holds log-probabilities and target probabilities.
Tensor kl_div(const Tensor& input, const Tensor& target, const KlDivOptions& options = {});

/// Arguments of poisson_nll_loss.
struct PoissonNllOptions {
  bool log_input = true;  ///< the input is the logarithm of the rate
  bool full = false;      ///< adds Stirling's approximation of log(target!)
  double eps = 1e-8;      ///< added to a rate before its logarithm is taken
  Reduction reduction = Reduction::mean;  ///< over all elements
};
/// The negative log-likelihood of counts `target` of a Poisson distribution: exp(input) - target input for the
/// logarithms of rates, else input - target log(input + eps). Sizes broadcast.
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNllOptions& options = {});

/// Arguments of gaussian_nll_loss.
struct GaussianNllOptions {
  bool full = false;  ///< adds the constant log(2 pi) / 2
  double eps = 1e-6;  ///< smaller variances count as this one, without an effect on their gradient
  Reduction reduction = Reduction::mean;  ///< over all elements
};
/// 0.5 (log var + (input - target)^2 / var). var has the input's shape, or 1 as its last size, or lacks it. Throws
/// ValueError for a negative variance.
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                         const GaussianNllOptions& options = {});

/// max(0, -y (x1 - x2) + margin), y is 1 or -1.
Tensor margin_ranking_loss(const Tensor& x1, const Tensor& x2, const Tensor& y, double margin = 0.0,
                           Reduction reduction = Reduction::mean);
/// x where y is 1, and max(0, margin - x) where y is -1.
Tensor hinge_embedding_loss(const Tensor& x, const Tensor& y, double margin = 1.0,
                            Reduction reduction = Reduction::mean);
/// 1 - cos(x1, x2) where y is 1, and max(0, cos(x1, x2) - margin) where y is -1; x1 and x2 are (B, D) or (D).
Tensor cosine_embedding_loss(const Tensor& x1, const Tensor& x2, const Tensor& y, double margin = 0.0,
                             Reduction reduction = Reduction::mean);
/// log(1 + exp(-y x)), y is 1 or -1.
Tensor soft_margin_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::mean);
/// Mean over the classes of the binary cross-entropy of each; x and y are (B, C) or (C), weight (C).
Tensor multilabel_soft_margin_loss(const Tensor& x, const Tensor& y, const Tensor& weight = {},
                                   Reduction reduction = Reduction::mean);

/// Sum over the classes c of a sample's targets and the classes i that are not among them of max(0, 1 - (x[c] - x[i])),
/// over the number of classes. x is (B, C) or (C); y, of the same sizes, lists the target classes of each sample up to
/// the first -1.
Tensor multilabel_margin_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::mean);

/// Arguments of multi_margin_loss.
struct MultiMarginOptions {
  double p = 1.0;                         ///< exponent, 1 or 2
  double margin = 1.0;                    ///< distance that a target's score keeps from the others
  Tensor weight{};                        ///< (C), factors of the samples by their target; undefined means ones
  Reduction reduction = Reduction::mean;  ///< over the samples
};
/// Sum over i != y of max(0, margin - x[y] + x[i])^p / C; x is (B, C) or (C), y (B) or () of int64 or int32.
Tensor multi_margin_loss(const Tensor& x, const Tensor& y, const MultiMarginOptions& options = {});

/// Arguments of triplet_margin_loss.
struct TripletMarginOptions {
  double margin = 1.0;                    ///< by which the negative is to be farther away than the positive
  double p = 2.0;                         ///< exponent of the distance's norm
  double eps = 1e-6;                      ///< added to the differences, as in pairwise_distance
  bool swap = false;  ///< uses the distance of positive and negative if it is smaller (Balntas et al. 2016)
  Reduction reduction = Reduction::mean;  ///< over the samples
};
/// The loss of triplets from their distances: max(0, near - far + margin), where far is at most `between` if that is
/// defined.
Tensor triplet_loss_of(const Tensor& near, const Tensor& far, const Tensor& between,
                       const TripletMarginOptions& options);
/// max(0, d(anchor, positive) - d(anchor, negative) + margin), d is pairwise_distance; all are (B, D) or (D).
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginOptions& options = {});

/// triplet_margin_loss by another distance of two tensors, which gives one number for each sample.
template <class Distance>
Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const Distance& distance, const TripletMarginOptions& options = {}) {
  return triplet_loss_of(distance(anchor, positive), distance(anchor, negative),
                         options.swap ? distance(positive, negative) : Tensor(), options);
}

/// Arguments of sigmoid_focal_loss.
struct FocalOptions {
  double alpha = 0.25;  ///< weight of positive targets, 1 - alpha of others; negative: no weights
  double gamma = 2.0;   ///< exponent: larger values weaken samples that are classified well
  Reduction reduction = Reduction::none;  ///< over all elements
};
/// bce_with_logits times (1 - p)^gamma, where p is the probability of the target (Lin et al. 2017), as in torchvision.
/// logits and target (0 or 1) have the same sizes; throws ShapeError otherwise.
Tensor sigmoid_focal_loss(const Tensor& logits, const Tensor& target, const FocalOptions& options = {});

/// Arguments of ctc_loss.
struct CtcOptions {
  int64_t blank = 0;                      ///< class that stands for no label
  Reduction reduction = Reduction::mean;  ///< mean divides by the lengths of the targets first
  bool zero_infinity = false;             ///< zero where a target does not fit its input
};
/// Connectionist temporal classification (Graves et al. 2006): log_probabilities (T, B, C) or (T, C), targets (B, S) or
/// (sum of lengths) of classes, lengths (B). Throws ShapeError and ValueError for lengths that do not fit, and
/// IndexError for a target that is no class or blank.
Tensor ctc_loss(const Tensor& log_probabilities, const Tensor& targets, const std::vector<int64_t>& input_lengths,
                const std::vector<int64_t>& target_lengths, const CtcOptions& options = {});

/// Cosine of the angle between x1 and x2 along axis; each norm counts as at least eps. Sizes broadcast.
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t axis = 1, double eps = 1e-8);
/// p-norm of x1 - x2 + eps along the last axis.
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2.0, double eps = 1e-6, bool keepdim = false);

}  // namespace levin
