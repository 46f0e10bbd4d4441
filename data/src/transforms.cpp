#include <levin/data/transforms.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace levin::data {

namespace {

/// An image as (planes, height, width) with dense rows.
struct Planes {
  Planes(const Tensor& image, const char* op) : tensor(image.is_contiguous() ? image : image.contiguous()) {
    if (image.dim() != 2 && image.dim() != 3) {
      throw ShapeError(fmt::format("[{}] an image is (C, H, W) or (H, W), not {}.", op, to_string(image.sizes())));
    }
    count = image.dim() == 3 ? image.size(0) : 1;
    height = image.size(-2);
    width = image.size(-1);
  }
  /// A tensor like this one with other heights and widths.
  Tensor like_with(int64_t h, int64_t w) const {
    Shape sizes = tensor.sizes();
    sizes[sizes.size() - 2] = h;
    sizes[sizes.size() - 1] = w;
    return empty(sizes, {.dtype = tensor.dtype()});
  }
  Tensor tensor;
  int64_t count, height, width;
};

}  // namespace

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

RandomCrop::RandomCrop(int64_t height, int64_t width, int64_t padding)
    : height_(height), width_(width), padding_(padding) {
  if (height < 1 || width < 1 || padding < 0) {
    throw ValueError(
        fmt::format("[random_crop] a window of {} x {} with padding {} makes no sense: sizes are 1 or more, "
                    "padding 0 or more.",
                    height, width, padding));
  }
}

Tensor RandomCrop::operator()(const Tensor& image, Generator& rng) const {
  const Planes in(image, "random_crop");
  const int64_t rows = in.height + 2 * padding_ - height_, columns = in.width + 2 * padding_ - width_;
  if (rows < 0 || columns < 0) {
    throw ShapeError(fmt::format("[random_crop] a window of {} x {} does not fit an image of {} with padding {}.",
                                 height_, width_, to_string(image.sizes()), padding_));
  }
  // Place of the window's corner in the unpadded image.
  const int64_t top = static_cast<int64_t>(rng.below(static_cast<std::uint64_t>(rows) + 1)) - padding_;
  const int64_t left = static_cast<int64_t>(rng.below(static_cast<std::uint64_t>(columns) + 1)) - padding_;
  const int64_t first = std::max<int64_t>(0, -left), last = std::min(width_, in.width - left);
  Tensor out = in.like_with(height_, width_);
  const int64_t element = size_of(image.dtype());
  std::memset(out.raw_data(), 0, static_cast<std::size_t>(out.numel() * element));
  const auto* from = static_cast<const std::byte*>(in.tensor.raw_data());
  auto* to = static_cast<std::byte*>(out.raw_data());
  for (int64_t c = 0; c < in.count && first < last; ++c) {
    for (int64_t y = std::max<int64_t>(0, -top); y < std::min(height_, in.height - top); ++y) {
      std::memcpy(to + ((c * height_ + y) * width_ + first) * element,
                  from + ((c * in.height + top + y) * in.width + left + first) * element,
                  static_cast<std::size_t>((last - first) * element));
    }
  }
  return out;
}

RandomHorizontalFlip::RandomHorizontalFlip(double p) : p_(p) {
  if (!(p >= 0 && p <= 1)) {
    throw ValueError(fmt::format("[random_horizontal_flip] the probability is {}; give one from 0 to 1.", p));
  }
}

Tensor RandomHorizontalFlip::operator()(const Tensor& image, Generator& rng) const {
  if (rng.uniform() >= p_) return image;
  const Planes in(image, "random_horizontal_flip");
  Tensor out = in.like_with(in.height, in.width);
  dispatch_all(image.dtype(), "random_horizontal_flip", [&]<class T>() {
    const T* from = in.tensor.data<T>();
    T* to = out.data<T>();
    for (int64_t y = 0; y < in.count * in.height; ++y) {
      std::reverse_copy(from + y * in.width, from + (y + 1) * in.width, to + y * in.width);
    }
  });
  return out;
}

Tensor Compose::operator()(const Tensor& image, Generator& rng) const {
  Tensor result = image;
  for (const Transform& t : transforms_) result = t(result, rng);
  return result;
}

}  // namespace levin::data
