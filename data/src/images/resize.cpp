// Transforms that interpolate pixels.

#include "planes.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

namespace levin::data {

using detail::Move;
using detail::Planes;

namespace {

/// Input pixels and weights of each output pixel along an axis.
struct Taps {
  std::vector<int64_t> first;
  std::vector<std::vector<float>> weights;
};

/// Triangle filter centred at each output pixel, at least two input pixels wide, as in Pillow.
Taps triangle_taps(int64_t from, int64_t to, bool antialias) {
  Taps taps;
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double reach = antialias ? std::max(1.0, scale) : 1.0;
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(centre - reach + 0.5));
    const int64_t last = std::min(from, static_cast<int64_t>(centre + reach + 0.5));
    std::vector<double> raw;
    double sum = 0;
    for (int64_t j = first; j < last; ++j) {
      raw.push_back(std::max(0.0, 1 - std::abs((static_cast<double>(j) + 0.5 - centre) / reach)));
      sum += raw.back();
    }
    taps.first.push_back(first);
    taps.weights.emplace_back();
    for (const double w : raw) taps.weights.back().push_back(static_cast<float>(w / sum));
  }
  return taps;
}

/// Sources of the pixels of an axis that is resized to the nearest pixel.
std::vector<int64_t> nearest_sources(int64_t from, int64_t to) {
  std::vector<int64_t> sources;
  for (int64_t i = 0; i < to; ++i) sources.push_back(std::min(from - 1, i * from / to));
  return sources;
}

float sum_of(const float* from, int64_t stride, std::span<const float> weights) {
  float sum = 0;
  for (const float w : weights) {
    sum += w * *from;
    from += stride;
  }
  return sum;
}

void store(const std::vector<float>& values, const Tensor& out) {
  if (out.dtype() == kFloat32) {
    std::copy(values.begin(), values.end(), out.data<float>());
    return;
  }
  auto* to = out.data<std::uint8_t>();
  for (const float v : values) *to++ = static_cast<std::uint8_t>(std::clamp(std::nearbyint(v), 0.f, 255.f));
}

void check_sizes(int64_t height, int64_t width, const char* op) {
  if (height >= 1 && width >= 1) return;
  throw ValueError(fmt::format("[{}] a size of {} x {} makes no sense; use 1 or more.", op, height, width));
}

Tensor resample(const Planes& in, int64_t height, int64_t width, bool antialias) {
  const Taps across = triangle_taps(in.width, width, antialias), down = triangle_taps(in.height, height, antialias);
  const std::vector<float> from = detail::floats_of(in, "resize");
  std::vector<float> wide(static_cast<std::size_t>(in.count * in.height * width));  // (count, in.height, width)
  for (int64_t y = 0; y < in.count * in.height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const auto i = static_cast<std::size_t>(x);
      wide[static_cast<std::size_t>(y * width + x)] =
          sum_of(from.data() + y * in.width + across.first[i], 1, across.weights[i]);
    }
  }
  std::vector<float> out(static_cast<std::size_t>(in.count * height * width));
  for (int64_t p = 0; p < in.count; ++p) {
    for (int64_t y = 0; y < height; ++y) {
      const auto i = static_cast<std::size_t>(y);
      const float* column = wide.data() + (p * in.height + down.first[i]) * width;
      for (int64_t x = 0; x < width; ++x) {
        out[static_cast<std::size_t>((p * height + y) * width + x)] = sum_of(column + x, width, down.weights[i]);
      }
    }
  }
  Tensor result = in.like_with(height, width);
  store(out, result);
  return result;
}

}  // namespace

Tensor resize(const Tensor& image, int64_t height, int64_t width, Interpolation interpolation, bool antialias) {
  check_sizes(height, width, "resize");
  const Planes in(image, "resize");
  if (in.height < 1 || in.width < 1) {
    throw ShapeError(fmt::format("[resize] an image of {} has no pixels.", to_string(image.sizes())));
  }
  if (in.height == height && in.width == width) return image;
  if (interpolation == Interpolation::nearest)
    return detail::gather(in, nearest_sources(in.height, height), nearest_sources(in.width, width), 0);
  return resample(in, height, width, antialias);
}

Resize::Resize(int64_t size, const ResizeOptions& options) : height_(size), width_(0), options_(options) {
  check_sizes(size, size, "resize");
  if (options.max_size && *options.max_size <= size) {
    throw ValueError(fmt::format("[resize] max_size is {}; it must be above the size {} of the shorter edge.",
                                 *options.max_size, size));
  }
}

Resize::Resize(int64_t height, int64_t width, const ResizeOptions& options)
    : height_(height), width_(width), options_(options) {
  check_sizes(height, width, "resize");
  if (options.max_size) throw ValueError("[resize] max_size goes with one size for the shorter edge, not with two.");
}

Move Resize::draw(const Tensor& image, Generator&) const {
  const Planes in(image, "resize");
  int64_t shorter = height_;
  const int64_t short_edge = std::max<int64_t>(1, std::min(in.height, in.width)), edge = std::max(in.height, in.width);
  int64_t longer = shorter * edge / short_edge;
  if (options_.max_size && longer > *options_.max_size) {
    shorter = std::max<int64_t>(1, *options_.max_size * shorter / longer);
    longer = *options_.max_size;
  }
  const bool wide = in.width > in.height;
  const int64_t height = width_ > 0 ? height_ : wide ? shorter : longer;
  const int64_t width = width_ > 0 ? width_ : wide ? longer : shorter;
  const auto pixels = [this, height, width](const Tensor& t, bool is_mask) {
    return resize(t, height, width, is_mask ? Interpolation::nearest : options_.interpolation, options_.antialias);
  };
  const auto ratio = [](int64_t to, int64_t from) {
    return static_cast<double>(to) / static_cast<double>(std::max<int64_t>(1, from));
  };
  return {pixels, {ratio(width, in.width), 0, 0}, {0, ratio(height, in.height), 0}};
}

RandomResizedCrop::RandomResizedCrop(int64_t height, int64_t width, const RandomResizedCropOptions& options)
    : height_(height), width_(width), options_(options) {
  check_sizes(height, width, "random_resized_crop");
  detail::check_range(options.scale, "scale", "random_resized_crop");
  detail::check_range(options.ratio, "ratio", "random_resized_crop");
}

Move RandomResizedCrop::draw(const Tensor& image, Generator& rng) const {
  const Planes in(image, "random_resized_crop");
  const auto finish = [this](int64_t top, int64_t left, int64_t h, int64_t w) -> Move {
    const auto pixels = [=, this](const Tensor& t, bool is_mask) {
      return resize(detail::window(Planes(t, "random_resized_crop"), top, left, h, w), height_, width_,
                    is_mask ? Interpolation::nearest : options_.interpolation, options_.antialias);
    };
    const double across = static_cast<double>(width_) / static_cast<double>(w);
    const double down = static_cast<double>(height_) / static_cast<double>(h);
    return {pixels, {across, 0, -across * static_cast<double>(left)}, {0, down, -down * static_cast<double>(top)}};
  };
  const auto area = static_cast<double>(in.height * in.width);
  const auto& [low, high] = options_.ratio;
  constexpr int tries = 10;
  for (int t = 0; t < tries; ++t) {
    const double part = area * detail::uniform_in(options_.scale, rng);
    const double ratio = std::exp(detail::uniform_in({std::log(low), std::log(high)}, rng));
    const auto w = static_cast<int64_t>(std::nearbyint(std::sqrt(part * ratio)));
    const auto h = static_cast<int64_t>(std::nearbyint(std::sqrt(part / ratio)));
    if (w < 1 || w > in.width || h < 1 || h > in.height) continue;
    const int64_t top = detail::up_to(in.height - h, rng);
    return finish(top, detail::up_to(in.width - w, rng), h, w);
  }
  // Fall back to the largest window in the middle with an allowed aspect ratio.
  const double own = static_cast<double>(in.width) / static_cast<double>(std::max<int64_t>(1, in.height));
  int64_t w = in.width, h = in.height;
  if (own < low) h = static_cast<int64_t>(std::nearbyint(static_cast<double>(w) / low));
  if (own > high) w = static_cast<int64_t>(std::nearbyint(static_cast<double>(h) * high));
  return finish((in.height - h) / 2, (in.width - w) / 2, h, w);
}

RandomRotation::RandomRotation(double degrees, const RandomRotationOptions& options)
    : degrees_(-degrees, degrees), options_(options) {
  if (!(degrees >= 0)) throw ValueError(fmt::format("[random_rotation] degrees is {}; use 0 or more.", degrees));
}

RandomRotation::RandomRotation(Range degrees, const RandomRotationOptions& options)
    : degrees_(degrees), options_(options) {
  if (!(degrees.first <= degrees.second)) {
    throw ValueError(fmt::format("[random_rotation] degrees go from {} to {}; give the lower number first.",
                                 degrees.first, degrees.second));
  }
}

Move RandomRotation::draw(const Tensor& image, Generator& rng) const {
  const Planes in(image, "random_rotation");
  const double angle = detail::uniform_in(degrees_, rng) * std::numbers::pi / 180;
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const double x0 = options_.center ? options_.center->first : static_cast<double>(in.width) / 2;
  const double y0 = options_.center ? options_.center->second : static_cast<double>(in.height) / 2;
  const detail::PixelMap back{{cosine, -sine, x0 - cosine * x0 + sine * y0},
                              {sine, cosine, y0 - sine * x0 - cosine * y0}};
  const auto pixels = [this, back](const Tensor& t, bool is_mask) {
    if (!is_mask) return detail::warp(t, back, options_.interpolation, options_.fill, "random_rotation");
    return detail::warp(t.to(kFloat32), back, Interpolation::nearest, 0, "random_rotation").to(t.dtype());
  };
  return {pixels, {cosine, sine, x0 - cosine * x0 - sine * y0}, {-sine, cosine, y0 + sine * x0 - cosine * y0}};
}

namespace detail {

std::vector<float> floats_of(const Planes& in, const char* op) {
  const auto n = static_cast<std::size_t>(in.tensor.numel());
  std::vector<float> out(n);
  if (in.tensor.dtype() == kUInt8) {
    std::copy_n(in.tensor.data<std::uint8_t>(), n, out.data());
  } else if (in.tensor.dtype() == kFloat32) {
    std::copy_n(in.tensor.data<float>(), n, out.data());
  } else {
    throw DTypeError(fmt::format("[{}] the image is {}; give uint8 or float32.", op, name_of(in.tensor.dtype())));
  }
  return out;
}

Tensor warp(const Tensor& image, const PixelMap& back, Interpolation interpolation, double fill_value, const char* op) {
  const Planes in(image, op);
  const auto fill = static_cast<float>(fill_value);
  const std::vector<float> from = floats_of(in, op);
  std::vector<float> out(from.size());
  const int64_t plane = in.height * in.width;
  const auto pixel = [&](const float* p, double x, double y) {
    const bool inside = x >= 0 && y >= 0 && x < static_cast<double>(in.width) && y < static_cast<double>(in.height);
    return inside ? p[static_cast<int64_t>(y) * in.width + static_cast<int64_t>(x)] : fill;
  };
  for (int64_t i = 0; i < plane; ++i) {
    const double right = static_cast<double>(i % in.width) + 0.5, down = static_cast<double>(i / in.width) + 0.5;
    const double x = back.x[0] * right + back.x[1] * down + back.x[2] - 0.5;
    const double y = back.y[0] * right + back.y[1] * down + back.y[2] - 0.5;
    for (int64_t p = 0; p < in.count; ++p) {
      const float* source = from.data() + p * plane;
      float& value = out[static_cast<std::size_t>(p * plane + i)];
      if (interpolation == Interpolation::nearest) {
        value = pixel(source, std::nearbyint(x), std::nearbyint(y));
        continue;
      }
      const double left = std::floor(x), top = std::floor(y);
      const auto fx = static_cast<float>(x - left), fy = static_cast<float>(y - top);
      const float upper = (1 - fx) * pixel(source, left, top) + fx * pixel(source, left + 1, top);
      const float lower = (1 - fx) * pixel(source, left, top + 1) + fx * pixel(source, left + 1, top + 1);
      value = (1 - fy) * upper + fy * lower;
    }
  }
  Tensor result = in.like_with(in.height, in.width);
  store(out, result);
  return result;
}

}  // namespace detail

}  // namespace levin::data
