#pragma once
// Helpers of the transforms.

#include <levin/data/transforms.h>

#include <fmt/format.h>

#include <array>
#include <functional>

namespace levin::data::detail {

/// An image as contiguous (planes, height, width).
struct Planes {
  Planes(const Tensor& image, const char* op) : tensor(image.is_contiguous() ? image : image.contiguous()) {
    if (image.dim() != 2 && image.dim() != 3) {
      throw ShapeError(fmt::format("[{}] an image is (C, H, W) or (H, W), not {}.", op, to_string(image.sizes())));
    }
    count = image.dim() == 3 ? image.size(0) : 1;
    height = image.size(-2);
    width = image.size(-1);
  }
  /// Allocates a tensor like this one with another height and width.
  Tensor like_with(int64_t h, int64_t w) const {
    Shape sizes = tensor.sizes();
    sizes[sizes.size() - 2] = h;
    sizes[sizes.size() - 1] = w;
    return empty(sizes, {.dtype = tensor.dtype()});
  }
  Tensor tensor;
  int64_t count, height, width;
};

inline double uniform_in(Range range, Generator& rng) {
  return range.first + (range.second - range.first) * rng.uniform();
}

/// Draws an integer from 0 to `most`, both included.
inline int64_t up_to(int64_t most, Generator& rng) {
  return static_cast<int64_t>(rng.below(static_cast<std::uint64_t>(most) + 1));
}

inline void check_probability(double p, const char* op) {
  if (!(p >= 0 && p <= 1)) throw ValueError(fmt::format("[{}] the probability is {}; give one from 0 to 1.", op, p));
}

/// Throws ValueError unless both bounds are above 0 and in order.
inline void check_range(Range range, const char* what, const char* op) {
  if (!(range.first > 0 && range.first <= range.second)) {
    throw ValueError(fmt::format("[{}] {} goes from {} to {}; both are above 0, the lower one first.", op, what,
                                 range.first, range.second));
  }
}

/// How a transform moves the pixels of one image, and the points in it.
struct Move {
  /// Applies the transform to an image or, `is_mask`, to a mask of the same height and width, of any type. Empty: the
  /// pixels stay.
  std::function<Tensor(const Tensor& image, bool is_mask)> pixels{};
  /// Rows (a, b, c) of the map of a point: its new x is a x + b y + c, and likewise y.
  std::array<double, 3> x{1, 0, 0}, y{0, 1, 0};
};

/// Maps the centre of a pixel back to its source: x = a right + b down + c, in pixels from the upper left corner, and
/// likewise y.
struct PixelMap {
  std::array<double, 3> x, y;
};

/// Converts an image, uint8 or f32, to floats (count, height, width). Throws DTypeError for other types.
std::vector<float> floats_of(const Planes& in, const char* op);

/// Takes each pixel from the place that `back` names; uint8 or f32.
Tensor warp(const Tensor& image, const PixelMap& back, Interpolation interpolation, double fill, const char* op);

/// Copies plane by plane, any type; `row` and `column` hold the source of each pixel, -1 for the fill.
Tensor gather(const Planes& in, const std::vector<int64_t>& row, const std::vector<int64_t>& column, double fill);

/// Copies the window of (height, width) at (top, left), which must lie inside the image. Any type.
Tensor window(const Planes& in, int64_t top, int64_t left, int64_t height, int64_t width);

}  // namespace levin::data::detail
