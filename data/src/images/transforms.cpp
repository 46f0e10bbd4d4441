#include <levin/data/transforms.h>

#include "planes.h"

#include <fmt/format.h>

#include <algorithm>

namespace levin::data {

using detail::Planes;

Tensor ToFloat::operator()(const Tensor& image, Generator&) const {
  const Tensor dense = image.is_contiguous() ? image : image.contiguous();
  if (dense.dtype() == kFloat32) return dense;
  Tensor out = empty(dense.sizes(), {.dtype = kFloat32});
  float* to = out.data<float>();
  if (dense.dtype() == kUInt8) {
    const auto* from = dense.data<std::uint8_t>();
    for (int64_t i = 0; i < dense.numel(); ++i) to[i] = static_cast<float>(from[i]) / 255.f;
    return out;
  }
  dispatch_floating(dense.dtype(), "to_float", [&]<class T>() {
    const T* from = dense.data<T>();
    for (int64_t i = 0; i < dense.numel(); ++i) to[i] = static_cast<float>(from[i]);
  });
  return out;
}

Normalize::Normalize(std::vector<float> mean, std::vector<float> std) : mean_(std::move(mean)), std_(std::move(std)) {
  if (mean_.empty() || mean_.size() != std_.size()) {
    throw ValueError(fmt::format("[normalize] {} means and {} stds were given; give one of each a channel.",
                                 mean_.size(), std_.size()));
  }
  if (std::find(std_.begin(), std_.end(), 0.f) != std_.end()) throw ValueError("[normalize] a std is 0; it divides.");
}

Tensor Normalize::operator()(const Tensor& image, Generator&) const {
  const Planes in(image, "normalize");
  const bool one_for_all = mean_.size() == 1;
  if (!one_for_all && static_cast<int64_t>(mean_.size()) != in.count) {
    throw ShapeError(fmt::format("[normalize] there are {} means, but the image is {}.", mean_.size(),
                                 to_string(image.sizes())));
  }
  const float* from = in.tensor.data<float>();
  Tensor out = in.like_with(in.height, in.width);
  float* to = out.data<float>();
  for (int64_t c = 0; c < in.count; ++c) {
    const std::size_t channel = one_for_all ? 0 : static_cast<std::size_t>(c);
    for (int64_t i = 0; i < in.height * in.width; ++i) *to++ = (*from++ - mean_[channel]) / std_[channel];
  }
  return out;
}

Tensor Compose::operator()(const Tensor& image, Generator& rng) const {
  Tensor result = image;
  for (const Transform& t : transforms_) result = t(result, rng);
  return result;
}

Compose::Compose(std::initializer_list<Transform> transforms) : transforms_(transforms) {}

Tensor GeometricTransform::operator()(const Tensor& image, Generator& rng) const {
  const detail::Move move = draw(image, rng);
  return move.pixels ? move.pixels(image, false) : image;
}

}  // namespace levin::data
