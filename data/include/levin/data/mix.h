#pragma once
// Augmentations that mix the samples of a batch, with torchvision's names and meanings.

#include <levin/core/generator.h>
#include <levin/data/batch.h>

namespace levin::data {

/// Options of MixUp and CutMix.
struct MixOptions {
  double alpha = 1;         ///< the part of each sample is drawn from Beta(alpha, alpha)
  int64_t num_classes = 0;  ///< required for labels that are classes
};

/// Adds to each sample of a batch the one before it: part * x + (1 - part) * roll(x), and likewise the labels (Zhang et
/// al., "mixup: Beyond empirical risk minimization", 2017). The first tensor of the batch holds the inputs, floating
/// (B, ...), the second the labels: classes int64 (B), which become f32 (B, num_classes), or probabilities
/// (B, classes). Losses such as cross_entropy accept probabilities.
class MixUp {
 public:
  /// Throws ValueError for an alpha that is not above 0. A call throws ShapeError for a batch that does not fit, and
  /// ValueError for classes without num_classes.
  explicit MixUp(const MixOptions& options = {});
  Batch operator()(const Batch& batch, Generator& rng) const;

 private:
  MixOptions options_;
};

/// Replaces one rectangle of each image (B, C, H, W) by that of the image before it, and mixes the labels by the areas
/// (Yun et al., "CutMix: Regularization strategy to train strong classifiers with localizable features", 2019). Takes
/// batches as MixUp does.
class CutMix {
 public:
  /// Throws as MixUp.
  explicit CutMix(const MixOptions& options = {});
  Batch operator()(const Batch& batch, Generator& rng) const;

 private:
  MixOptions options_;
};

}  // namespace levin::data
