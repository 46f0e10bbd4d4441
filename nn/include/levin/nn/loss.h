#pragma once
// Losses as modules: loss(input, target).

#include <levin/autograd/ops/loss.h>
#include <levin/nn/layer.h>

namespace levin::nn {

/// Base of modules that take an input and a target.
class Loss : public Layer<Loss> {
 public:
  virtual Tensor forward(const Tensor& input, const Tensor& target) = 0;
};

/// See levin::cross_entropy.
class CrossEntropyLoss : public Layer<CrossEntropyLoss, Loss> {
 public:
  using Options = CrossEntropyOptions;
  explicit CrossEntropyLoss(const Options& options = {});
  Tensor forward(const Tensor& input, const Tensor& target) override { return cross_entropy(input, target, options); }
  template <class F>
  auto with_arguments(F construct) const {
    return construct(options);
  }

  const Options options;
};

/// See levin::nll_loss.
class NLLLoss : public Layer<NLLLoss, Loss> {
 public:
  using Options = NllOptions;
  explicit NLLLoss(const Options& options = {});
  Tensor forward(const Tensor& input, const Tensor& target) override { return nll_loss(input, target, options); }
  template <class F>
  auto with_arguments(F construct) const {
    return construct(options);
  }

  const Options options;
};

/// See levin::bce_with_logits.
class BCEWithLogitsLoss : public Layer<BCEWithLogitsLoss, Loss> {
 public:
  using Options = BceOptions;
  explicit BCEWithLogitsLoss(const Options& options = {});
  Tensor forward(const Tensor& input, const Tensor& target) override { return bce_with_logits(input, target, options); }
  template <class F>
  auto with_arguments(F construct) const {
    return construct(options);
  }

  const Options options;
};

class MSELoss : public Layer<MSELoss, Loss> {
 public:
  explicit MSELoss(Reduction reduction_ = Reduction::mean) : reduction(reduction_) {}
  Tensor forward(const Tensor& input, const Tensor& target) override { return mse_loss(input, target, reduction); }
  template <class F>
  auto with_arguments(F construct) const {
    return construct(reduction);
  }

  const Reduction reduction;
};

}  // namespace levin::nn
