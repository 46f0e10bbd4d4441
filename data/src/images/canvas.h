#pragma once
// Colours of an image, with torchvision's rounding of bytes.

#include "planes.h"

namespace levin::data::detail {

/// An image as floats (C, H, W) from 0 to `bound`.
struct Canvas {
  /// Throws ShapeError unless the image is uint8 or f32 with 1 or 3 channels.
  Canvas(const Planes& in, const char* op);
  /// Returns the values with the type and sizes of `like`.
  Tensor image(const Planes& like) const;

  float bound() const { return bytes ? 255.f : 1.f; }
  float stored(float v) const;
  float gray(int64_t i) const;
  float& at(int64_t channel, int64_t i) { return values[static_cast<std::size_t>(channel * pixels + i)]; }
  float at(int64_t channel, int64_t i) const { return values[static_cast<std::size_t>(channel * pixels + i)]; }

  std::vector<float> values;
  int64_t channels, pixels;
  bool bytes;
};

/// Computes factor * image + (1 - factor) * other, where `other` returns the value of a channel at a pixel.
template <class Other>
void blend(Canvas& c, float factor, const Other& other) {
  for (int64_t i = 0; i < c.pixels; ++i) {
    for (int64_t p = 0; p < c.channels; ++p) {
      float& v = c.at(p, i);
      v = c.stored(factor * v + (1 - factor) * other(p, i));
    }
  }
}

void change_brightness(Canvas& c, float factor);
void change_contrast(Canvas& c, float factor);
void change_saturation(Canvas& c, float factor);

}  // namespace levin::data::detail
