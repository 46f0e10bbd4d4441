#pragma once
// Losses as modules: loss(input, target), with PyTorch's names and defaults. See the functions for the formulas.

#include <levin/autograd/ops/loss.h>
#include <levin/nn/container.h>
#include <levin/nn/layers.h>

#include <functional>

namespace levin::nn {

/// Base of modules that take an input and a target.
class Loss : public Layer<Loss> {
 public:
  virtual Tensor forward(const Tensor& input, const Tensor& target) = 0;
};

// The constructors of all losses are in loss.cpp. A loss of a function's options:
#define LEVIN_LOSS_OF_OPTIONS(Class, function, OptionsType)                                                         \
  class Class : public Layer<Class, Loss> {                                                                         \
   public:                                                                                                          \
    using Options = OptionsType;                                                                                    \
    explicit Class(const Options& o = {});                                                                          \
    Tensor forward(const Tensor& input, const Tensor& target) override { return function(input, target, options); } \
    template <class F>                                                                                              \
    auto with_arguments(F construct) const {                                                                        \
      return construct(options);                                                                                    \
    }                                                                                                               \
    const Options options;                                                                                          \
  };
// A loss of a reduction alone.
#define LEVIN_LOSS(Class, function)                                                                                   \
  class Class : public Layer<Class, Loss> {                                                                           \
   public:                                                                                                            \
    explicit Class(Reduction reduction_ = Reduction::mean);                                                           \
    Tensor forward(const Tensor& input, const Tensor& target) override { return function(input, target, reduction); } \
    template <class F>                                                                                                \
    auto with_arguments(F construct) const {                                                                          \
      return construct(reduction);                                                                                    \
    }                                                                                                                 \
    const Reduction reduction;                                                                                        \
  };
// A loss of a reduction and a number, in the order of PyTorch's constructor.
#define LEVIN_LOSS_OF_NUMBER(Class, function, name, value)                          \
  class Class : public Layer<Class, Loss> {                                         \
   public:                                                                          \
    explicit Class(Reduction reduction_ = Reduction::mean, double name##_ = value); \
    Tensor forward(const Tensor& input, const Tensor& target) override {            \
      return function(input, target, reduction, name);                              \
    }                                                                               \
    template <class F>                                                              \
    auto with_arguments(F construct) const {                                        \
      return construct(reduction, name);                                            \
    }                                                                               \
    const Reduction reduction;                                                      \
    const double name;                                                              \
  };
// A loss of three tensors.
#define LEVIN_LOSS_OF_THREE(Class, function, first, second, third)                   \
  class Class : public Layer<Class> {                                                \
   public:                                                                           \
    explicit Class(double margin_ = 0.0, Reduction reduction_ = Reduction::mean);    \
    Tensor forward(const Tensor& first, const Tensor& second, const Tensor& third) { \
      return function(first, second, third, margin, reduction);                      \
    }                                                                                \
    template <class F>                                                               \
    auto with_arguments(F construct) const {                                         \
      return construct(margin, reduction);                                           \
    }                                                                                \
    const double margin;                                                             \
    const Reduction reduction;                                                       \
  };

LEVIN_LOSS_OF_OPTIONS(CrossEntropyLoss, cross_entropy, CrossEntropyOptions)
LEVIN_LOSS_OF_OPTIONS(NLLLoss, nll_loss, NllOptions)
LEVIN_LOSS_OF_OPTIONS(BCEWithLogitsLoss, bce_with_logits, BceOptions)
LEVIN_LOSS_OF_OPTIONS(KLDivLoss, kl_div, KlDivOptions)
LEVIN_LOSS_OF_OPTIONS(PoissonNLLLoss, poisson_nll_loss, PoissonNllOptions)
LEVIN_LOSS_OF_OPTIONS(MultiMarginLoss, multi_margin_loss, MultiMarginOptions)
LEVIN_LOSS(MSELoss, mse_loss)
LEVIN_LOSS(L1Loss, l1_loss)
LEVIN_LOSS(SoftMarginLoss, soft_margin_loss)
LEVIN_LOSS(MultiLabelMarginLoss, multilabel_margin_loss)
LEVIN_LOSS_OF_NUMBER(SmoothL1Loss, smooth_l1_loss, beta, 1.0)
LEVIN_LOSS_OF_NUMBER(HuberLoss, huber_loss, delta, 1.0)
LEVIN_LOSS_OF_THREE(MarginRankingLoss, margin_ranking_loss, x1, x2, target)
LEVIN_LOSS_OF_THREE(CosineEmbeddingLoss, cosine_embedding_loss, x1, x2, target)
#undef LEVIN_LOSS_OF_OPTIONS
#undef LEVIN_LOSS
#undef LEVIN_LOSS_OF_NUMBER
#undef LEVIN_LOSS_OF_THREE

struct BCELossOptions {
  Tensor weight{};
  Reduction reduction = Reduction::mean;
};
class BCELoss : public Layer<BCELoss, Loss> {
 public:
  using Options = BCELossOptions;
  explicit BCELoss(const Options& o = {});
  Tensor forward(const Tensor& input, const Tensor& target) override {
    return binary_cross_entropy(input, target, options.weight, options.reduction);
  }
  template <class F>
  auto with_arguments(F construct) const {
    return construct(options);
  }

  const Options options;
};

class MultiLabelSoftMarginLoss : public Layer<MultiLabelSoftMarginLoss, Loss> {
 public:
  using Options = BCELossOptions;
  explicit MultiLabelSoftMarginLoss(const Options& o = {});
  Tensor forward(const Tensor& input, const Tensor& target) override {
    return multilabel_soft_margin_loss(input, target, options.weight, options.reduction);
  }
  template <class F>
  auto with_arguments(F construct) const {
    return construct(options);
  }

  const Options options;
};

class HingeEmbeddingLoss : public Layer<HingeEmbeddingLoss, Loss> {
 public:
  explicit HingeEmbeddingLoss(double margin_ = 1.0, Reduction reduction_ = Reduction::mean);
  Tensor forward(const Tensor& input, const Tensor& target) override {
    return hinge_embedding_loss(input, target, margin, reduction);
  }
  template <class F>
  auto with_arguments(F construct) const {
    return construct(margin, reduction);
  }

  const double margin;
  const Reduction reduction;
};

class GaussianNLLLoss : public Layer<GaussianNLLLoss> {
 public:
  using Options = GaussianNllOptions;
  explicit GaussianNLLLoss(const Options& o = {});
  Tensor forward(const Tensor& input, const Tensor& target, const Tensor& var) {
    return gaussian_nll_loss(input, target, var, options);
  }
  template <class F>
  auto with_arguments(F construct) const {
    return construct(options);
  }

  const Options options;
};

class TripletMarginLoss : public Layer<TripletMarginLoss> {
 public:
  using Options = TripletMarginOptions;
  explicit TripletMarginLoss(const Options& o = {});
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) {
    return triplet_margin_loss(anchor, positive, negative, options);
  }
  template <class F>
  auto with_arguments(F construct) const {
    return construct(options);
  }

  const Options options;
};

/// TripletMarginLoss by a function of two tensors, which gives one number for each sample.
class TripletMarginWithDistanceLoss : public Layer<TripletMarginWithDistanceLoss> {
 public:
  using Options = TripletMarginOptions;
  using Distance = std::function<Tensor(const Tensor&, const Tensor&)>;
  /// Without a function the distance is pairwise_distance.
  explicit TripletMarginWithDistanceLoss(Distance distance = {}, const Options& o = {});
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative);
  template <class F>
  auto with_arguments(F construct) const {
    return construct(distance_, options);
  }

  const Options options;

 private:
  Distance distance_;
};

struct AdaptiveSoftmaxOptions {
  double div_value = 4.0;  ///< each cluster's rows are projected to a size smaller by this factor
  bool head_bias = false;
};
/// Softmax over many classes, sorted from frequent to rare and cut into clusters at `cutoffs` (Grave et al. 2017). The
/// head has the classes below the first cutoff and one output for each cluster. Parameters have PyTorch's names.
class AdaptiveLogSoftmaxWithLoss : public Layer<AdaptiveLogSoftmaxWithLoss> {
 public:
  using Options = AdaptiveSoftmaxOptions;
  AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t n_classes, const std::vector<int64_t>& cutoffs,
                             const Options& o = {});
  struct Result {
    Tensor output;  ///< (B), the log-probability of each target
    Tensor loss;    ///< its negative mean
  };
  /// x is (B, in_features) or (in_features), target (B) or () of int64 or int32.
  Result forward(const Tensor& x, const Tensor& target);
  /// Returns the log-probabilities of all classes, (B, n_classes).
  Tensor log_prob(const Tensor& x);
  /// Returns the most probable class of each row.
  Tensor predict(const Tensor& x);
  template <class F>
  auto with_arguments(F construct) const {
    return construct(in_features, n_classes, cutoffs, options);
  }

  const int64_t in_features, n_classes;
  const std::vector<int64_t> cutoffs;
  const Options options;

 private:
  Linear& head_;
  ModuleList<Sequential>& tail_;
};

class CTCLoss : public Layer<CTCLoss> {
 public:
  using Options = CtcOptions;
  explicit CTCLoss(const Options& o = {});
  Tensor forward(const Tensor& log_probabilities, const Tensor& targets, const std::vector<int64_t>& input_lengths,
                 const std::vector<int64_t>& target_lengths) {
    return ctc_loss(log_probabilities, targets, input_lengths, target_lengths, options);
  }
  template <class F>
  auto with_arguments(F construct) const {
    return construct(options);
  }

  const Options options;
};

struct CosineSimilarityOptions {
  int64_t dim = 1;
  double eps = 1e-8;
};
class CosineSimilarity : public Layer<CosineSimilarity> {
 public:
  using Options = CosineSimilarityOptions;
  explicit CosineSimilarity(const Options& o = {});
  Tensor forward(const Tensor& x1, const Tensor& x2) { return cosine_similarity(x1, x2, options.dim, options.eps); }
  template <class F>
  auto with_arguments(F construct) const {
    return construct(options);
  }

  const Options options;
};

struct PairwiseDistanceOptions {
  double p = 2.0;
  double eps = 1e-6;
  bool keepdim = false;
};
class PairwiseDistance : public Layer<PairwiseDistance> {
 public:
  using Options = PairwiseDistanceOptions;
  explicit PairwiseDistance(const Options& o = {});
  Tensor forward(const Tensor& x1, const Tensor& x2) {
    return pairwise_distance(x1, x2, options.p, options.eps, options.keepdim);
  }
  template <class F>
  auto with_arguments(F construct) const {
    return construct(options);
  }

  const Options options;
};

}  // namespace levin::nn
