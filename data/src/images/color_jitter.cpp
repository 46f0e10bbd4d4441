// ColorJitter with torchvision's results, including its rounding of bytes.

#include "canvas.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace levin::data {

using detail::Canvas;
using detail::Planes;

namespace {

/// Shifts the hue of a colour in [0, 1] by a part of the circle (Smith, "Color gamut transform pairs", 1978).
std::array<float, 3> with_hue_shifted(float r, float g, float b, float shift) {
  const float high = std::max({r, g, b}), low = std::min({r, g, b}), range = high - low;
  if (range == 0) return {r, g, b};
  const float rc = (high - r) / range, gc = (high - g) / range, bc = (high - b) / range;
  const float sector = high == r ? bc - gc : high == g ? 2 + rc - bc : 4 + gc - rc;
  float hue = sector / 6 + 1 + shift;
  hue -= std::floor(hue);
  const float s = range / high, at = hue * 6, part = at - std::floor(at);
  const auto clip = [](float v) { return std::clamp(v, 0.f, 1.f); };
  const float p = clip(high * (1 - s)), q = clip(high * (1 - s * part)), t = clip(high * (1 - s * (1 - part)));
  switch (static_cast<int>(std::floor(at)) % 6) {
    case 0:
      return {high, t, p};
    case 1:
      return {q, high, p};
    case 2:
      return {p, high, t};
    case 3:
      return {p, q, high};
    case 4:
      return {t, p, high};
    default:
      return {high, p, q};
  }
}

void change_hue(Canvas& c, float shift) {
  if (c.channels == 1 || shift == 0) return;
  constexpr float to_byte = 256.f - 1e-3f;  // as torchvision: each byte value covers an equal part of [0, 1]
  for (int64_t i = 0; i < c.pixels; ++i) {
    const auto turned = with_hue_shifted(c.at(0, i) / c.bound(), c.at(1, i) / c.bound(), c.at(2, i) / c.bound(), shift);
    for (int64_t p = 0; p < 3; ++p) {
      const float v = turned[static_cast<std::size_t>(p)];
      c.at(p, i) = c.bytes ? std::floor(v * to_byte) : v;
    }
  }
}

}  // namespace

ColorJitter::ColorJitter(double brightness, double contrast, double saturation, double hue)
    : brightness_(brightness), contrast_(contrast), saturation_(saturation), hue_(hue) {
  if (!(brightness >= 0 && contrast >= 0 && saturation >= 0)) {
    throw ValueError(fmt::format("[color_jitter] brightness {}, contrast {} and saturation {} must be 0 or more.",
                                 brightness, contrast, saturation));
  }
  if (!(hue >= 0 && hue <= 0.5)) throw ValueError(fmt::format("[color_jitter] hue is {}; use 0 to 0.5.", hue));
}

Tensor ColorJitter::operator()(const Tensor& image, Generator& rng) const {
  const Planes in(image, "color_jitter");
  Canvas c(in, "color_jitter");
  std::array<int, 4> order{0, 1, 2, 3};
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
  const auto factor = [&](double strength) {
    return static_cast<float>(detail::uniform_in({std::max(0.0, 1 - strength), 1 + strength}, rng));
  };
  // Each factor is drawn whether it is used or not, so that one setting does not change the numbers of another.
  const float brightness = factor(brightness_), contrast = factor(contrast_), saturation = factor(saturation_);
  const auto hue = static_cast<float>(detail::uniform_in({-hue_, hue_}, rng));
  for (const int what : order) {
    if (what == 0 && brightness_ > 0) detail::change_brightness(c, brightness);
    if (what == 1 && contrast_ > 0) detail::change_contrast(c, contrast);
    if (what == 2 && saturation_ > 0) detail::change_saturation(c, saturation);
    if (what == 3 && hue_ > 0) change_hue(c, hue);
  }
  return c.image(in);
}

}  // namespace levin::data
