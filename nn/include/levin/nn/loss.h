#pragma once
// Losses as modules: loss(input, target), with PyTorch's names and defaults. A comment gives the loss of an element or
// sample; the reduction `mean` (the default) or `sum` makes one number () of them, and `none` returns them all. Inputs
// are floating, of one dtype with floating targets; targets that are classes are int64 or int32. Weights among the
// options are buffers, "weight" and "pos_weight": they move with the module and are in its state dict. See the
// functions of autograd/ops/loss.h for the errors.

#include <levin/autograd/ops/loss.h>
#include <levin/nn/container.h>
#include <levin/nn/layers.h>

#include <functional>

namespace levin::nn {

/// Base of modules that take an input and a target. The result is () for the reductions mean and sum, and the losses of
/// the elements or samples for none.
class Loss : public Layer<Loss> {
 public:
  /// Returns the loss of `input`, which is a model's output, against `target`.
  virtual Tensor forward(const Tensor& input, const Tensor& target) = 0;
};

// The constructors of all losses are in loss.cpp. A loss of a function's options:
#define LEVIN_LOSS_OF_OPTIONS(Class, function, OptionsType)                                                         \
  class Class : public Layer<Class, Loss> {                                                                         \
   public:                                                                                                          \
    using Options = OptionsType;                                                                                    \
    explicit Class(const Options& o = {});                                                                          \
    Tensor forward(const Tensor& input, const Tensor& target) override { return function(input, target, options); } \
    auto with_arguments(auto construct) const { return construct(options); }                                        \
    const Options options;                                                                                          \
  };
// A loss of a reduction alone.
#define LEVIN_LOSS(Class, function)                                                                                   \
  class Class : public Layer<Class, Loss> {                                                                           \
   public:                                                                                                            \
    explicit Class(Reduction reduction_ = Reduction::mean);                                                           \
    Tensor forward(const Tensor& input, const Tensor& target) override { return function(input, target, reduction); } \
    auto with_arguments(auto construct) const { return construct(reduction); }                                        \
    const Reduction reduction;                                                                                        \
  };
// A loss of a reduction and a number, in the order of PyTorch's constructor.
#define LEVIN_LOSS_OF_NUMBER(Class, function, name, value)                           \
  class Class : public Layer<Class, Loss> {                                          \
   public:                                                                           \
    explicit Class(Reduction reduction_ = Reduction::mean, double name##_ = value);  \
    Tensor forward(const Tensor& input, const Tensor& target) override {             \
      return function(input, target, reduction, name);                               \
    }                                                                                \
    auto with_arguments(auto construct) const { return construct(reduction, name); } \
    const Reduction reduction;                                                       \
    const double name;                                                               \
  };
// A loss of three tensors.
#define LEVIN_LOSS_OF_THREE(Class, function, first, second, third)                     \
  class Class : public Layer<Class> {                                                  \
   public:                                                                             \
    explicit Class(double margin_ = 0.0, Reduction reduction_ = Reduction::mean);      \
    Tensor forward(const Tensor& first, const Tensor& second, const Tensor& third) {   \
      return function(first, second, third, margin, reduction);                        \
    }                                                                                  \
    auto with_arguments(auto construct) const { return construct(margin, reduction); } \
    const double margin;                                                               \
    const Reduction reduction;                                                         \
  };

/// -log softmax(input)[target]: input is logits (B, C), (B, C, ...) or (C); target is class indices (B), (B, ...) or
/// (), or probabilities of the input's shape. The mean is weighted by options.weight and leaves out ignore_index.
/// Throws IndexError for a class outside of [0, C).
LEVIN_LOSS_OF_OPTIONS(CrossEntropyLoss, cross_entropy, CrossEntropyOptions)
/// -input[target]: input is log-probabilities (B, C), (B, C, ...) or (C), target classes (B), (B, ...) or (). The mean
/// is weighted by options.weight and leaves out ignore_index.
LEVIN_LOSS_OF_OPTIONS(NLLLoss, nll_loss, NllOptions)
/// Binary cross-entropy of sigmoid(input) against targets in [0, 1] of the same shape: -(pos_weight y log p +
/// (1 - y) log(1 - p)), stable for large logits.
LEVIN_LOSS_OF_OPTIONS(BCEWithLogitsLoss, bce_with_logits, BceOptions)
/// Kullback-Leibler divergence: target (log target - input), where input is log-probabilities. The mean is over
/// elements, as in PyTorch; options.batchmean divides by the first size instead.
LEVIN_LOSS_OF_OPTIONS(KLDivLoss, kl_div, KlDivOptions)
/// Negative log-likelihood of counts under a Poisson distribution, without log(target!): exp(input) - target input, or
/// input - target log(input + eps) if the input is the rate itself (log_input false).
LEVIN_LOSS_OF_OPTIONS(PoissonNLLLoss, poisson_nll_loss, PoissonNllOptions)
/// Sum over i != y of max(0, margin - x[y] + x[i])^p / C, times weight[y]; x is (B, C) or (C), y classes (B) or ().
LEVIN_LOSS_OF_OPTIONS(MultiMarginLoss, multi_margin_loss, MultiMarginOptions)
/// (input - target)^2, with the given `reduction`. Tensors of different shapes are broadcast, with a warning.
LEVIN_LOSS(MSELoss, mse_loss)
/// |input - target|, with the given `reduction`. Tensors of different shapes are broadcast, with a warning.
LEVIN_LOSS(L1Loss, l1_loss)
/// log(1 + exp(-target input)), with the given `reduction`; targets are 1 or -1, of the input's shape.
LEVIN_LOSS(SoftMarginLoss, soft_margin_loss)
/// Sum over the classes c of a sample's targets and the classes i that are not among them of max(0, 1 - (x[c] - x[i]))
/// / C, with the given `reduction`. x is (B, C) or (C); the target, of the same shape, lists classes up to the first
/// -1.
LEVIN_LOSS(MultiLabelMarginLoss, multilabel_margin_loss)
/// 0.5 d^2 / beta for |d| < beta, else |d| - 0.5 beta, of d = input - target, with the given `reduction`
/// (Girshick 2015). beta 0 is L1Loss; forward throws ValueError for less.
LEVIN_LOSS_OF_NUMBER(SmoothL1Loss, smooth_l1_loss, beta, 1.0)
/// 0.5 d^2 for |d| < delta, else delta (|d| - 0.5 delta), of d = input - target, with the given `reduction`
/// (Huber 1964). forward throws ValueError unless delta is positive.
LEVIN_LOSS_OF_NUMBER(HuberLoss, huber_loss, delta, 1.0)
/// max(0, -target (x1 - x2) + margin), with the given `reduction`: x1 shall rank above x2 where the target is 1, and
/// below where it is -1. All have one shape.
LEVIN_LOSS_OF_THREE(MarginRankingLoss, margin_ranking_loss, x1, x2, target)
/// 1 - cos(x1, x2) where the target is 1, and max(0, cos(x1, x2) - margin) where it is -1, with the given `reduction`;
/// x1 and x2 are (B, D) or (D), the target (B) or ().
LEVIN_LOSS_OF_THREE(CosineEmbeddingLoss, cosine_embedding_loss, x1, x2, target)
#undef LEVIN_LOSS_OF_OPTIONS
#undef LEVIN_LOSS
#undef LEVIN_LOSS_OF_NUMBER
#undef LEVIN_LOSS_OF_THREE

/// Options of BCELoss and MultiLabelSoftMarginLoss.
struct BCELossOptions {
  Tensor weight{};                        ///< factors that broadcast to the input, (C) for classes; undefined: ones
  Reduction reduction = Reduction::mean;  ///< of the losses to one number
};
/// Binary cross-entropy of probabilities: -(y log p + (1 - y) log(1 - p)) of an input p and a target y of one shape, in
/// [0, 1]; logarithms are at least -100. BCEWithLogitsLoss is more exact. Throws ShapeError for different shapes.
class BCELoss : public Layer<BCELoss, Loss> {
 public:
  using Options = BCELossOptions;
  explicit BCELoss(const Options& o = {});
  Tensor forward(const Tensor& input, const Tensor& target) override {
    return binary_cross_entropy(input, target, options.weight, options.reduction);
  }
  auto with_arguments(auto construct) const { return construct(options); }

  const Options options;
};

/// Mean over the classes of the binary cross-entropy of each, with logits as input; input and target are (B, C) or (C),
/// targets 0 or 1, the result without reduction (B) or ().
class MultiLabelSoftMarginLoss : public Layer<MultiLabelSoftMarginLoss, Loss> {
 public:
  using Options = BCELossOptions;
  explicit MultiLabelSoftMarginLoss(const Options& o = {});
  Tensor forward(const Tensor& input, const Tensor& target) override {
    return multilabel_soft_margin_loss(input, target, options.weight, options.reduction);
  }
  auto with_arguments(auto construct) const { return construct(options); }

  const Options options;
};

/// x where the target is 1, and max(0, margin - x) where it is -1, with the given `reduction`; x is a distance, and the
/// target has its shape.
class HingeEmbeddingLoss : public Layer<HingeEmbeddingLoss, Loss> {
 public:
  explicit HingeEmbeddingLoss(double margin_ = 1.0, Reduction reduction_ = Reduction::mean);
  Tensor forward(const Tensor& input, const Tensor& target) override {
    return hinge_embedding_loss(input, target, margin, reduction);
  }
  auto with_arguments(auto construct) const { return construct(margin, reduction); }

  const double margin;
  const Reduction reduction;
};

/// Negative log-likelihood of the target under a normal distribution of mean `input` and variance `var`:
/// 0.5 (log var + (input - target)^2 / var), with var at least options.eps. var has the input's shape, or 1 as its last
/// size, or lacks it. Throws ValueError for a negative variance.
class GaussianNLLLoss : public Layer<GaussianNLLLoss> {
 public:
  using Options = GaussianNllOptions;
  explicit GaussianNLLLoss(const Options& o = {});
  Tensor forward(const Tensor& input, const Tensor& target, const Tensor& var) {
    return gaussian_nll_loss(input, target, var, options);
  }
  auto with_arguments(auto construct) const { return construct(options); }

  const Options options;
};

/// max(0, d(anchor, positive) - d(anchor, negative) + margin), where d is the p-norm of the difference plus eps; all
/// are (B, D) or (D), the result without reduction (B) or ().
class TripletMarginLoss : public Layer<TripletMarginLoss> {
 public:
  using Options = TripletMarginOptions;
  explicit TripletMarginLoss(const Options& o = {});
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) {
    return triplet_margin_loss(anchor, positive, negative, options);
  }
  auto with_arguments(auto construct) const { return construct(options); }

  const Options options;
};

/// TripletMarginLoss by a function of two tensors, which gives one number for each sample; options.p and options.eps do
/// not take part.
class TripletMarginWithDistanceLoss : public Layer<TripletMarginWithDistanceLoss> {
 public:
  using Options = TripletMarginOptions;
  /// The distance of two tensors (B, ...), (B).
  using Distance = std::function<Tensor(const Tensor&, const Tensor&)>;
  /// Without a function the distance is pairwise_distance.
  explicit TripletMarginWithDistanceLoss(Distance distance = {}, const Options& o = {});
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative);
  auto with_arguments(auto construct) const { return construct(distance_, options); }

  const Options options;

 private:
  Distance distance_;
};

/// Options of AdaptiveLogSoftmaxWithLoss.
struct AdaptiveSoftmaxOptions {
  double div_value = 4.0;  ///< cluster i (from 1) projects to in_features / div_value^i features
  bool head_bias = false;  ///< adds a bias to the head's outputs
};
/// Log-softmax of in_features features over n_classes classes, sorted from frequent to rare and cut into clusters at
/// `cutoffs` (Grave et al. 2017). The head has the classes below the first cutoff and one output for each cluster.
/// Parameters have PyTorch's names. forward computes the log-probabilities of all classes, whatever the targets are.
class AdaptiveLogSoftmaxWithLoss : public Layer<AdaptiveLogSoftmaxWithLoss> {
 public:
  using Options = AdaptiveSoftmaxOptions;
  /// Throws ValueError unless the cutoffs increase between 1 and n_classes - 1.
  AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t n_classes, const std::vector<int64_t>& cutoffs,
                             const Options& o = {});
  /// The result of forward.
  struct Result {
    Tensor output;  ///< (B) or (), the log-probability of each target
    Tensor loss;    ///< (), its negative mean
  };
  /// x is (B, in_features) or (in_features), target (B) or () of int64 or int32. Throws ShapeError for other shapes.
  Result forward(const Tensor& x, const Tensor& target);
  /// Returns the log-probabilities of all classes, (B, n_classes), of x (B, in_features).
  Tensor log_prob(const Tensor& x);
  /// Returns the most probable class of each row, int64 (B).
  Tensor predict(const Tensor& x);
  auto with_arguments(auto construct) const { return construct(in_features, n_classes, cutoffs, options); }

  const int64_t in_features, n_classes;
  const std::vector<int64_t> cutoffs;
  const Options options;

 private:
  Linear& head_;
  ModuleList<Sequential>& tail_;
};

/// Connectionist temporal classification (Graves et al. 2006): -log of the probability of a target sequence, which is
/// the sum over its alignments with the input. log_probabilities is (T, B, C), or (T, C) for one sample; targets are
/// classes, (B, S), or all in a row (sum of target_lengths); the lengths are one number for each sample, of steps and
/// of classes. The mean divides each loss by its target's length first. Throws ShapeError and ValueError for lengths
/// that do not fit, and IndexError for a target that is the blank or no class.
class CTCLoss : public Layer<CTCLoss> {
 public:
  using Options = CtcOptions;
  explicit CTCLoss(const Options& o = {});
  Tensor forward(const Tensor& log_probabilities, const Tensor& targets, const std::vector<int64_t>& input_lengths,
                 const std::vector<int64_t>& target_lengths) {
    return ctc_loss(log_probabilities, targets, input_lengths, target_lengths, options);
  }
  auto with_arguments(auto construct) const { return construct(options); }

  const Options options;
};

/// Options of CosineSimilarity.
struct CosineSimilarityOptions {
  int64_t dim = 1;    ///< axis of the vectors
  double eps = 1e-8;  ///< each norm is at least this large
};
/// Cosine of the angle between x1 and x2 along options.dim, which disappears; the shapes broadcast.
class CosineSimilarity : public Layer<CosineSimilarity> {
 public:
  using Options = CosineSimilarityOptions;
  explicit CosineSimilarity(const Options& o = {});
  Tensor forward(const Tensor& x1, const Tensor& x2) { return cosine_similarity(x1, x2, options.dim, options.eps); }
  auto with_arguments(auto construct) const { return construct(options); }

  const Options options;
};

/// Options of PairwiseDistance.
struct PairwiseDistanceOptions {
  double p = 2.0;        ///< of the p-norm
  double eps = 1e-6;     ///< added to each difference
  bool keepdim = false;  ///< keeps the last axis as 1
};
/// p-norm of x1 - x2 + eps along the last axis, which disappears; the shapes broadcast.
class PairwiseDistance : public Layer<PairwiseDistance> {
 public:
  using Options = PairwiseDistanceOptions;
  explicit PairwiseDistance(const Options& o = {});
  Tensor forward(const Tensor& x1, const Tensor& x2) {
    return pairwise_distance(x1, x2, options.p, options.eps, options.keepdim);
  }
  auto with_arguments(auto construct) const { return construct(options); }

  const Options options;
};

}  // namespace levin::nn
