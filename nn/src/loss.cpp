#include <levin/nn/loss.h>

namespace levin::nn {

namespace {

Tensor copy_of(const Tensor& t) { return t.defined() ? t.detach().clone() : t; }

/// Returns the options with tensors of the module's own: moving a loss or loading its state changes no other's.
template <class O>
O with_own_tensors(O options) {
  if constexpr (requires { options.weight; }) options.weight = copy_of(options.weight);
  if constexpr (requires { options.pos_weight; }) options.pos_weight = copy_of(options.pos_weight);
  return options;
}

/// Keeps the tensors among a loss's options as buffers, which move with the module.
template <class O>
void register_weights(Module& module, const O& options) {
  if constexpr (requires { options.weight; }) module.register_buffer("weight", options.weight);
  if constexpr (requires { options.pos_weight; }) module.register_buffer("pos_weight", options.pos_weight);
}

}  // namespace

#define LEVIN_CONSTRUCTOR(Class) \
  Class::Class(const Options& o) : options(with_own_tensors(o)) { register_weights(*this, options); }
LEVIN_CONSTRUCTOR(CrossEntropyLoss)
LEVIN_CONSTRUCTOR(NLLLoss)
LEVIN_CONSTRUCTOR(BCEWithLogitsLoss)
LEVIN_CONSTRUCTOR(KLDivLoss)
LEVIN_CONSTRUCTOR(PoissonNLLLoss)
LEVIN_CONSTRUCTOR(MultiMarginLoss)
LEVIN_CONSTRUCTOR(BCELoss)
LEVIN_CONSTRUCTOR(MultiLabelSoftMarginLoss)
LEVIN_CONSTRUCTOR(GaussianNLLLoss)
LEVIN_CONSTRUCTOR(TripletMarginLoss)
LEVIN_CONSTRUCTOR(CTCLoss)
LEVIN_CONSTRUCTOR(CosineSimilarity)
LEVIN_CONSTRUCTOR(PairwiseDistance)
#undef LEVIN_CONSTRUCTOR

TripletMarginWithDistanceLoss::TripletMarginWithDistanceLoss(Distance distance, const Options& o)
    : options(o), distance_(std::move(distance)) {}
Tensor TripletMarginWithDistanceLoss::forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) {
  if (!distance_) return triplet_margin_loss(anchor, positive, negative, options);
  return triplet_margin_with_distance_loss(anchor, positive, negative, distance_, options);
}

MSELoss::MSELoss(Reduction r) : reduction(r) {}
L1Loss::L1Loss(Reduction r) : reduction(r) {}
SoftMarginLoss::SoftMarginLoss(Reduction r) : reduction(r) {}
MultiLabelMarginLoss::MultiLabelMarginLoss(Reduction r) : reduction(r) {}
SmoothL1Loss::SmoothL1Loss(Reduction r, double b) : reduction(r), beta(b) {}
HuberLoss::HuberLoss(Reduction r, double d) : reduction(r), delta(d) {}
MarginRankingLoss::MarginRankingLoss(double m, Reduction r) : margin(m), reduction(r) {}
CosineEmbeddingLoss::CosineEmbeddingLoss(double m, Reduction r) : margin(m), reduction(r) {}
HingeEmbeddingLoss::HingeEmbeddingLoss(double m, Reduction r) : margin(m), reduction(r) {}

}  // namespace levin::nn
