// Transforms that move pixels without changing them.

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/indexing.h>

#include "planes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace levin::data {

using detail::Move;
using detail::Planes;

namespace {

/// Index of the source of pixel `i` on an axis of `size` pixels; -1 for the fill.
int64_t source_of(int64_t i, int64_t size, PaddingMode mode) {
  if (i >= 0 && i < size) return i;
  switch (mode) {
    case PaddingMode::constant:
      return -1;
    case PaddingMode::edge:
      return i < 0 ? 0 : size - 1;
    case PaddingMode::reflect: {
      if (size == 1) return 0;
      const int64_t period = 2 * (size - 1), r = ((i % period) + period) % period;
      return r < size ? r : period - r;
    }
    case PaddingMode::symmetric: {
      const int64_t period = 2 * size, r = ((i % period) + period) % period;
      return r < size ? r : period - 1 - r;
    }
  }
  return -1;
}

std::vector<int64_t> sources(int64_t before, int64_t size, int64_t after, PaddingMode mode) {
  std::vector<int64_t> list;
  for (int64_t i = -before; i < size + after; ++i) list.push_back(source_of(i, size, mode));
  return list;
}

void check_window(int64_t height, int64_t width, const char* op) {
  if (height >= 1 && width >= 1) return;
  throw ValueError(fmt::format("[{}] a window of {} x {} makes no sense: sizes are 1 or more.", op, height, width));
}

}  // namespace

namespace detail {

Tensor gather(const Planes& in, const std::vector<int64_t>& row, const std::vector<int64_t>& column, double fill) {
  const auto height = static_cast<int64_t>(row.size()), width = static_cast<int64_t>(column.size());
  Tensor out = in.like_with(height, width);
  dispatch_all(in.tensor.dtype(), "gather", [&]<class T>() {
    const T* from = in.tensor.data<T>();
    T* to = out.data<T>();
    const T filler = static_cast<T>(fill);
    for (int64_t p = 0; p < in.count; ++p) {
      for (const int64_t y : row) {
        const T* line = from + (p * in.height + std::max<int64_t>(y, 0)) * in.width;
        for (const int64_t x : column) *to++ = y < 0 || x < 0 ? filler : line[x];
      }
    }
  });
  return out;
}

Tensor window(const Planes& in, int64_t top, int64_t left, int64_t height, int64_t width) {
  Tensor out = in.like_with(height, width);
  const int64_t element = size_of(in.tensor.dtype());
  const auto* from = static_cast<const std::byte*>(in.tensor.raw_data());
  auto* to = static_cast<std::byte*>(out.raw_data());
  for (int64_t p = 0; p < in.count; ++p) {
    for (int64_t y = 0; y < height; ++y) {
      std::memcpy(to + (p * height + y) * width * element,
                  from + ((p * in.height + top + y) * in.width + left) * element,
                  static_cast<std::size_t>(width * element));
    }
  }
  return out;
}

}  // namespace detail

Pad::Pad(int64_t left, int64_t top, int64_t right, int64_t bottom, double fill, PaddingMode mode)
    : left_(left), top_(top), right_(right), bottom_(bottom), fill_(fill), mode_(mode) {
  if (std::min({left, top, right, bottom}) < 0) {
    throw ValueError(fmt::format("[pad] padding of {}, {}, {} and {} pixels makes no sense; use 0 or more.", left, top,
                                 right, bottom));
  }
}

Tensor Pad::operator()(const Tensor& image) const {
  const Planes in(image, "pad");
  const bool too_far = std::max(left_, right_) >= in.width || std::max(top_, bottom_) >= in.height;
  if (in.width == 0 || in.height == 0 || (mode_ == PaddingMode::reflect && too_far)) {
    throw ShapeError(fmt::format("[pad] an image of {} cannot be padded by {}, {}, {} and {} pixels in this mode.",
                                 to_string(image.sizes()), left_, top_, right_, bottom_));
  }
  return detail::gather(in, sources(top_, in.height, bottom_, mode_), sources(left_, in.width, right_, mode_), fill_);
}

Move Pad::draw(const Tensor&, Generator&) const {
  const auto pixels = [this](const Tensor& image, bool is_mask) {
    return is_mask ? Pad(left_, top_, right_, bottom_)(image) : (*this)(image);
  };
  return {pixels, {1, 0, static_cast<double>(left_)}, {0, 1, static_cast<double>(top_)}};
}

RandomCrop::RandomCrop(int64_t height, int64_t width, int64_t padding, const RandomCropOptions& options)
    : height_(height), width_(width), padding_(padding), options_(options) {
  if (height < 1 || width < 1 || padding < 0) {
    throw ValueError(
        fmt::format("[random_crop] a window of {} x {} with padding {} makes no sense: sizes are 1 or more, "
                    "padding 0 or more.",
                    height, width, padding));
  }
}

Tensor RandomCrop::padded(const Tensor& image, double fill, PaddingMode mode) const {
  const auto pad = [&](const Tensor& t, int64_t x, int64_t y) { return Pad(x, y, x, y, fill, mode)(t); };
  Tensor out = padding_ > 0 ? pad(image, padding_, padding_) : image;
  if (!options_.pad_if_needed) return out;
  if (out.size(-1) < width_) out = pad(out, width_ - out.size(-1), 0);
  if (out.size(-2) < height_) out = pad(out, 0, height_ - out.size(-2));
  return out;
}

Move RandomCrop::draw(const Tensor& image, Generator& rng) const {
  const Planes in(image, "random_crop");
  const auto extra = [&](int64_t have, int64_t want) {
    return options_.pad_if_needed ? std::max<int64_t>(0, want - have - 2 * padding_) : 0;
  };
  const int64_t above = padding_ + extra(in.height, height_), before = padding_ + extra(in.width, width_);
  const int64_t rows = in.height + 2 * above - height_, columns = in.width + 2 * before - width_;
  if (rows < 0 || columns < 0) {
    throw ShapeError(fmt::format("[random_crop] a window of {} x {} does not fit an image of {} with padding {}.",
                                 height_, width_, to_string(image.sizes()), padding_));
  }
  const int64_t top = detail::up_to(rows, rng), left = detail::up_to(columns, rng);
  const auto pixels = [this, top, left](const Tensor& t, bool is_mask) {
    const Tensor wide = is_mask ? padded(t, 0, PaddingMode::constant) : padded(t, options_.fill, options_.padding_mode);
    return detail::window(Planes(wide, "random_crop"), top, left, height_, width_);
  };
  return {pixels, {1, 0, static_cast<double>(before - left)}, {0, 1, static_cast<double>(above - top)}};
}

CenterCrop::CenterCrop(int64_t height, int64_t width) : height_(height), width_(width) {
  check_window(height, width, "center_crop");
}

Move CenterCrop::draw(const Tensor& image, Generator&) const {
  const Planes in(image, "center_crop");
  const int64_t wide = std::max<int64_t>(0, width_ - in.width), high = std::max<int64_t>(0, height_ - in.height);
  // Rounds half to even, as Python does.
  const auto middle = [](int64_t room) { return static_cast<int64_t>(std::nearbyint(static_cast<double>(room) / 2)); };
  const int64_t top = middle(in.height + high - height_), left = middle(in.width + wide - width_);
  const auto pixels = [this, wide, high, top, left](const Tensor& t, bool) {
    const Tensor padded = Pad(wide / 2, high / 2, (wide + 1) / 2, (high + 1) / 2)(t);
    return detail::window(Planes(padded, "center_crop"), top, left, height_, width_);
  };
  return {pixels, {1, 0, static_cast<double>(wide / 2 - left)}, {0, 1, static_cast<double>(high / 2 - top)}};
}

RandomHorizontalFlip::RandomHorizontalFlip(double p) : p_(p) { detail::check_probability(p, "random_horizontal_flip"); }

Move RandomHorizontalFlip::draw(const Tensor& image, Generator& rng) const {
  if (rng.uniform() >= p_) return {};
  const auto pixels = [](const Tensor& t, bool) { return flip(Planes(t, "random_horizontal_flip").tensor, {-1}); };
  return {pixels, {-1, 0, static_cast<double>(image.size(-1))}};
}

RandomVerticalFlip::RandomVerticalFlip(double p) : p_(p) { detail::check_probability(p, "random_vertical_flip"); }

Move RandomVerticalFlip::draw(const Tensor& image, Generator& rng) const {
  if (rng.uniform() >= p_) return {};
  const auto pixels = [](const Tensor& t, bool) { return flip(Planes(t, "random_vertical_flip").tensor, {-2}); };
  return {pixels, {1, 0, 0}, {0, -1, static_cast<double>(image.size(-2))}};
}

RandomErasing::RandomErasing(const RandomErasingOptions& options) : options_(options) {
  detail::check_probability(options.p, "random_erasing");
  detail::check_range(options.scale, "scale", "random_erasing");
  detail::check_range(options.ratio, "ratio", "random_erasing");
  if (options.scale.second > 1) {
    throw ValueError(
        fmt::format("[random_erasing] scale goes up to {}; a part of the area is 1 at most.", options.scale.second));
  }
}

Tensor RandomErasing::operator()(const Tensor& image, Generator& rng) const {
  if (rng.uniform() >= options_.p) return image;
  const Planes in(image, "random_erasing");
  const auto area = static_cast<double>(in.height * in.width);
  constexpr int tries = 10;
  for (int t = 0; t < tries; ++t) {
    const double part = area * detail::uniform_in(options_.scale, rng);
    const double ratio =
        std::exp(detail::uniform_in({std::log(options_.ratio.first), std::log(options_.ratio.second)}, rng));
    const auto h = static_cast<int64_t>(std::nearbyint(std::sqrt(part * ratio)));
    const auto w = static_cast<int64_t>(std::nearbyint(std::sqrt(part / ratio)));
    if (h >= in.height || w >= in.width) continue;
    const int64_t top = detail::up_to(in.height - h, rng), left = detail::up_to(in.width - w, rng);
    Tensor out = in.tensor.clone();
    const Tensor rectangle = out.narrow(-2, top, h).narrow(-1, left, w);
    if (options_.value) {
      rectangle.fill_(*options_.value);
    } else {
      rectangle.copy_(randn(rectangle.sizes(), {.dtype = out.dtype(), .generator = &rng}));
    }
    return out;
  }
  return image;
}

}  // namespace levin::data
