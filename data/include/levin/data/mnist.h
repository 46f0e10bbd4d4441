#pragma once
// MNIST (LeCun et al. 1998) and Fashion-MNIST (Xiao et al. 2017): 60,000 training and 10,000 test images of 28 x 28
// grey pixels in ten classes.

#include <levin/data/dataset.h>

#include <string>
#include <string_view>
#include <vector>

namespace levin::data {

/// The folder of Debian's package dataset-fashion-mnist.
inline constexpr const char* kFashionMnistDir = "/usr/share/datasets/fashion-mnist";

/// Clothes: images f32 (B, 1, 28, 28) with (byte / 255 - 0.2860) / 0.3530, labels int64 (B) from 0 to 9.
class FashionMnist final : public ImageDataset {
 public:
  /// `split` is "train" or "test"; `augment` changes the (1, 28, 28) bytes, e.g. Compose{RandomCrop(28, 2),
  /// RandomHorizontalFlip()}. Throws ValueError for another split, and IoError for a missing file, with the package to
  /// install, or a damaged one.
  explicit FashionMnist(std::string_view split, const std::string& dir = kFashionMnistDir, Transform augment = {});
  /// Names of the labels 0 to 9, as in torchvision: "T-shirt/top", "Trouser", ...
  static const std::vector<std::string>& classes();
};

/// Handwritten digits: images f32 (B, 1, 28, 28) with (byte / 255 - 0.1307) / 0.3081, labels int64 (B) from 0 to 9.
class Mnist final : public ImageDataset {
 public:
  /// `dir` holds files of the same names as Fashion-MNIST's. `split`, `augment` and errors are as of FashionMnist.
  Mnist(std::string_view split, const std::string& dir, Transform augment = {});
};

}  // namespace levin::data
