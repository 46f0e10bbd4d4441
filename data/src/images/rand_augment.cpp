#include <levin/data/augment.h>

#include "canvas.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

namespace levin::data {

using detail::Canvas;
using detail::PixelMap;
using detail::Planes;

namespace {

constexpr int kAugmentations = static_cast<int>(Augmentation::equalize) + 1;

/// Where the pixels of a change that moves them come from.
PixelMap source_of(Augmentation change, double magnitude, const Planes& in) {
  switch (change) {
    case Augmentation::shear_x:
      return {{1, magnitude, 0}, {0, 1, 0}};
    case Augmentation::shear_y:
      return {{1, 0, 0}, {magnitude, 1, 0}};
    case Augmentation::translate_x:
      return {{1, 0, -std::trunc(magnitude)}, {0, 1, 0}};
    case Augmentation::translate_y:
      return {{1, 0, 0}, {0, 1, -std::trunc(magnitude)}};
    default: {
      const double angle = magnitude * std::numbers::pi / 180, cosine = std::cos(angle), sine = std::sin(angle);
      const double x0 = static_cast<double>(in.width) / 2, y0 = static_cast<double>(in.height) / 2;
      return {{cosine, -sine, x0 - cosine * x0 + sine * y0}, {sine, cosine, y0 - sine * x0 - cosine * y0}};
    }
  }
}

/// The image under the kernel ((1, 1, 1), (1, 5, 1), (1, 1, 1)) / 13, rounded; pixels at the edge stay.
Canvas blurred(const Canvas& c, int64_t width) {
  Canvas out = c;
  const int64_t height = c.pixels / width;
  for (int64_t p = 0; p < c.channels; ++p) {
    for (int64_t y = 1; y + 1 < height; ++y) {
      for (int64_t x = 1; x + 1 < width; ++x) {
        const int64_t i = y * width + x;
        float sum = 4 * c.at(p, i);
        for (const int64_t row : {i - width, i, i + width}) sum += c.at(p, row - 1) + c.at(p, row) + c.at(p, row + 1);
        out.at(p, i) = std::nearbyint(sum / 13);
      }
    }
  }
  return out;
}

void change_sharpness(Canvas& c, float factor, const Planes& in) {
  if (in.height <= 2 || in.width <= 2) return;
  const Canvas other = blurred(c, in.width);
  detail::blend(c, factor, [&other](int64_t p, int64_t i) { return other.at(p, i); });
}

using Table = std::array<std::uint8_t, 256>;

/// Replaces each byte of a plane by that of a table made from the plane.
template <class MakeTable>
Tensor replaced(const Planes& in, const MakeTable& make_table) {
  Tensor out = in.like_with(in.height, in.width);
  const int64_t pixels = in.height * in.width;
  const auto* from = in.tensor.data<std::uint8_t>();
  auto* to = out.data<std::uint8_t>();
  for (int64_t p = 0; p < in.count; ++p, from += pixels, to += pixels) {
    const Table table = make_table(std::span(from, static_cast<std::size_t>(pixels)));
    std::transform(from, from + pixels, to, [&table](std::uint8_t v) { return table[v]; });
  }
  return out;
}

template <class Value>
Table table_of(const Value& value) {
  Table table;
  for (int v = 0; v < 256; ++v) table[static_cast<std::size_t>(v)] = static_cast<std::uint8_t>(value(v));
  return table;
}

Table stretched(std::span<const std::uint8_t> plane) {
  const auto [least, greatest] = std::ranges::minmax_element(plane);
  if (plane.empty() || *least == *greatest) return table_of([](int v) { return v; });
  const auto low = static_cast<float>(*least);
  const float scale = 1 / static_cast<float>(*greatest - *least) * 255;  // rounded twice, as PyTorch divides a number
  return table_of([&](int v) { return std::clamp((static_cast<float>(v) - low) * scale, 0.f, 255.f); });
}

Table equalized(std::span<const std::uint8_t> plane) {
  std::array<int64_t, 256> counts{};
  for (const std::uint8_t v : plane) ++counts[v];
  const auto last = std::ranges::find_if(counts.rbegin(), counts.rend(), [](int64_t n) { return n > 0; });
  const int64_t step = last == counts.rend() ? 0 : (static_cast<int64_t>(plane.size()) - *last) / 255;
  if (step == 0) return table_of([](int v) { return v; });
  int64_t below = 0;  // number of pixels with smaller values
  return table_of([&](int v) {
    const int64_t value = v == 0 ? 0 : (below + step / 2) / step;
    below += counts[static_cast<std::size_t>(v)];
    return std::clamp<int64_t>(value, 0, 255);
  });
}

/// Largest magnitude of a change, and its magnitude at a bin of RandAugment.
double magnitude_of(Augmentation change, int64_t bin, int64_t bins, const Planes& in) {
  const double part = bins > 1 ? static_cast<double>(bin) / static_cast<double>(bins - 1) : 0;
  switch (change) {
    case Augmentation::shear_x:
    case Augmentation::shear_y:
      return 0.3 * part;
    case Augmentation::translate_x:
      return 150.0 / 331 * static_cast<double>(in.width) * part;
    case Augmentation::translate_y:
      return 150.0 / 331 * static_cast<double>(in.height) * part;
    case Augmentation::rotate:
      return 30 * part;
    case Augmentation::posterize:
      return 8 - std::nearbyint(4 * part);
    case Augmentation::solarize:
      return 255 * (1 - part);
    default:
      return 0.9 * part;
  }
}

bool has_direction(Augmentation change) { return change >= Augmentation::shear_x && change <= Augmentation::sharpness; }

}  // namespace

Tensor augment(const Tensor& image, Augmentation change, double magnitude, double fill) {
  const Planes in(image, "augment");
  if (image.dtype() != kUInt8)
    throw DTypeError(fmt::format("[augment] the image is {}; give uint8.", name_of(image.dtype())));
  Canvas c(in, "augment");
  const auto factor = static_cast<float>(1 + magnitude);
  switch (change) {
    case Augmentation::identity:
      return image;
    case Augmentation::brightness:
      detail::change_brightness(c, factor);
      return c.image(in);
    case Augmentation::color:
      detail::change_saturation(c, factor);
      return c.image(in);
    case Augmentation::contrast:
      detail::change_contrast(c, factor);
      return c.image(in);
    case Augmentation::sharpness:
      change_sharpness(c, factor, in);
      return c.image(in);
    case Augmentation::posterize: {
      const int mask = 0xff << (8 - std::clamp(static_cast<int>(magnitude), 0, 8)) & 0xff;
      return replaced(in, [&](auto) { return table_of([&](int v) { return v & mask; }); });
    }
    case Augmentation::solarize:
      return replaced(in, [&](auto) { return table_of([&](int v) { return v >= magnitude ? 255 - v : v; }); });
    case Augmentation::auto_contrast:
      return replaced(in, stretched);
    case Augmentation::equalize:
      return replaced(in, equalized);
    default:
      return detail::warp(in.tensor, source_of(change, magnitude, in), Interpolation::nearest, fill, "augment");
  }
}

RandAugment::RandAugment(const RandAugmentOptions& options) : options_(options) {
  if (options.num_ops < 0 || options.magnitude < 0 || options.magnitude >= options.num_magnitude_bins)
    throw ValueError(fmt::format(
        "[rand_augment] num_ops is {} and magnitude {}; use 0 or more, and 0 to num_magnitude_bins - 1 = {}.",
        options.num_ops, options.magnitude, options.num_magnitude_bins - 1));
}

Tensor RandAugment::operator()(const Tensor& image, Generator& rng) const {
  Tensor out = image;
  for (int64_t i = 0; i < options_.num_ops; ++i) {
    const auto change = static_cast<Augmentation>(rng.below(kAugmentations));
    const bool negative = has_direction(change) && rng.below(2) == 1;
    const double magnitude =
        magnitude_of(change, options_.magnitude, options_.num_magnitude_bins, Planes(image, "rand_augment"));
    out = augment(out, change, negative ? -magnitude : magnitude, options_.fill);
  }
  return out;
}

}  // namespace levin::data
