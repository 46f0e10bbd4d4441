#pragma once
// Changes to one sample's image, (C, H, W) or (H, W). Each is a function object; random ones draw from the sample's own
// generator. Names and meanings are torchvision's.

#include <levin/core/generator.h>
#include <levin/core/tensor.h>

#include <functional>
#include <vector>

namespace levin::data {

using Transform = std::function<Tensor(const Tensor& image, Generator& rng)>;

/// uint8 in [0, 255] to f32 in [0, 1]; floating images only change their type to f32.
struct ToFloat {
  Tensor operator()(const Tensor& image, Generator& rng) const;
};

/// (x - mean) / std with one value a channel, or one for all channels; f32 images (C, H, W) or (H, W).
class Normalize {
 public:
  /// Throws ValueError when the counts differ or a std is 0.
  Normalize(std::vector<float> mean, std::vector<float> std);
  Tensor operator()(const Tensor& image, Generator& rng) const;

 private:
  std::vector<float> mean_, std_;
};

/// A random (height, width) window after `padding` zeros were put on every side; any type.
class RandomCrop {
 public:
  explicit RandomCrop(int64_t size, int64_t padding = 0) : RandomCrop(size, size, padding) {}
  RandomCrop(int64_t height, int64_t width, int64_t padding);
  Tensor operator()(const Tensor& image, Generator& rng) const;

 private:
  int64_t height_, width_, padding_;
};

/// Mirrors left and right with probability `p`; any type.
class RandomHorizontalFlip {
 public:
  explicit RandomHorizontalFlip(double p = 0.5);
  Tensor operator()(const Tensor& image, Generator& rng) const;

 private:
  double p_;
};

/// One after the other.
class Compose {
 public:
  Compose(std::initializer_list<Transform> transforms) : transforms_(transforms) {}
  Tensor operator()(const Tensor& image, Generator& rng) const;

 private:
  std::vector<Transform> transforms_;
};

}  // namespace levin::data
