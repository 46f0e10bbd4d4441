#pragma once
// Collects the first misclassified images of every class.

#include <levin/levin.h>

#include <algorithm>
#include <vector>

class Mistakes {
 public:
  static constexpr std::int64_t kPerClass = 8;
  explicit Mistakes(std::int64_t classes)
      : images_(levin::zeros({classes * kPerClass, 1, 28, 28})), kept_(static_cast<std::size_t>(classes)) {}

  /// Adds the misclassified ones of a batch: images (B, 1, 28, 28), logits (B, C), targets (B).
  void add(const levin::Tensor& images, const levin::Tensor& logits, const levin::Tensor& targets) {
    const auto wrong = levin::nonzero(levin::ne(levin::argmax(logits, 1), targets).to(levin::kInt64));
    for (const auto row : wrong.cpu().to_vector<std::int64_t>()) {
      const auto target = targets[row].item<std::int64_t>();
      auto& kept = kept_[static_cast<std::size_t>(target)];
      if (kept == kPerClass) continue;
      const auto image = images[row].cpu().to(levin::kFloat32);
      const double least = image.min().item<double>(), range = image.max().item<double>() - least;
      images_[target * kPerClass + kept++] = (image - least) / std::max(range, 1e-6);
    }
  }
  /// Returns (classes * kPerClass, 1, 28, 28) in [0, 1]: kPerClass images for each class in turn, black ones if there
  /// are fewer.
  const levin::Tensor& images() const { return images_; }

 private:
  levin::Tensor images_;
  std::vector<std::int64_t> kept_;
};
