#pragma once
// CIFAR-10 and CIFAR-100 (Krizhevsky 2009): 50,000 training and 10,000 test images of 32 x 32 in colour, in their
// binary version: rows of label bytes, then 3072 bytes of red, green and blue.

#include <levin/data/dataset.h>

#include <string>
#include <string_view>

namespace levin::data {

/// Images f32 (B, 3, 32, 32) with (byte / 255 - kMean) / kStd, labels int64 (B) from 0 to 9.
class Cifar10 final : public ImageDataset {
 public:
  /// Mean and standard deviation of red, green and blue over the training images, in [0, 1].
  static constexpr float kMean[] = {0.4914f, 0.4822f, 0.4465f};
  static constexpr float kStd[] = {0.2470f, 0.2435f, 0.2616f};
  /// `dir` holds data_batch_1.bin to data_batch_5.bin and test_batch.bin (or a folder cifar-10-batches-bin with them).
  /// `augment` changes the (3, 32, 32) bytes. Throws ValueError for a split other than "train" and "test", IoError for
  /// a missing or damaged file.
  Cifar10(std::string_view split, const std::string& dir, Transform augment = {});
};

/// CIFAR-100: 100 classes, read from train.bin and test.bin (or from a folder cifar-100-binary with them). Images and
/// errors are as of Cifar10.
class Cifar100 final : public ImageDataset {
 public:
  /// Mean and standard deviation of red, green and blue over the training images, in [0, 1].
  static constexpr float kMean[] = {0.5071f, 0.4865f, 0.4409f};
  static constexpr float kStd[] = {0.2673f, 0.2564f, 0.2762f};
  /// With `coarse`, labels are the 20 superclasses, instead of the 100 classes.
  Cifar100(std::string_view split, const std::string& dir, Transform augment = {}, bool coarse = false);
};

}  // namespace levin::data
