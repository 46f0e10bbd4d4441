#include "canvas.h"

#include <algorithm>
#include <cmath>

namespace levin::data::detail {

Canvas::Canvas(const Planes& in, const char* op)
    : channels(in.count), pixels(in.height * in.width), bytes(in.tensor.dtype() == kUInt8) {
  const Tensor& image = in.tensor;
  if ((!bytes && image.dtype() != kFloat32) || (in.count != 1 && in.count != 3)) {
    throw ShapeError(fmt::format("[{}] an image is uint8 or float32 (3, H, W) or (1, H, W), not {} {}.", op,
                                 name_of(image.dtype()), to_string(image.sizes())));
  }
  values = floats_of(in, op);
}

Tensor Canvas::image(const Planes& like) const {
  Tensor out = like.like_with(like.height, like.width);
  if (bytes) {
    std::ranges::transform(values, out.data<std::uint8_t>(), [](float v) { return static_cast<std::uint8_t>(v); });
  } else {
    std::ranges::copy(values, out.data<float>());
  }
  return out;
}

float Canvas::stored(float v) const {
  v = std::clamp(v, 0.f, bound());
  return bytes ? std::floor(v) : v;
}

float Canvas::gray(int64_t i) const {
  if (channels == 1) return at(0, i);
  return stored(0.2989f * at(0, i) + 0.587f * at(1, i) + 0.114f * at(2, i));
}

void change_brightness(Canvas& c, float factor) {
  blend(c, factor, [](int64_t, int64_t) { return 0.f; });
}

void change_contrast(Canvas& c, float factor) {
  double sum = 0;
  for (int64_t i = 0; i < c.pixels; ++i) sum += static_cast<double>(c.gray(i));
  const auto mean = static_cast<float>(sum / static_cast<double>(std::max<int64_t>(1, c.pixels)));
  blend(c, factor, [mean](int64_t, int64_t) { return mean; });
}

void change_saturation(Canvas& c, float factor) {
  if (c.channels == 1) return;
  std::vector<float> gray;  // of the pixels before any changes
  for (int64_t i = 0; i < c.pixels; ++i) gray.push_back(c.gray(i));
  blend(c, factor, [&gray](int64_t, int64_t i) { return gray[static_cast<std::size_t>(i)]; });
}

}  // namespace levin::data::detail
