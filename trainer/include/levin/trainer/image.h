#pragma once
// Tensors as pictures.

#include <levin/core/io.h>
#include <levin/core/tensor.h>

#include <filesystem>
#include <optional>
#include <utility>

namespace levin {

/// Names and defaults as torchvision.utils.make_grid.
struct GridOptions {
  std::int64_t nrow = 8;     ///< pictures a row
  std::int64_t padding = 2;  ///< pixels around each
  bool normalize = false;    ///< shifts and scales to [0, 1]: by value_range, or by the least and greatest value
  std::optional<std::pair<double, double>> value_range{};
  double pad_value = 0;
};

/// One picture (3, height, width) f32 of many: (N, C, H, W), (C, H, W) or (H, W), where C is 1 or 3 and values are
/// floating in [0, 1] or u8. Throws ShapeError.
Tensor make_grid(const Tensor& images, const GridOptions& options = {});

/// An 8-bit PNG of (C, H, W) with C of 1, 3 or 4, or (H, W): u8, or floating, where [0, 1] becomes 0 to 255 and what
/// lies outside is clamped. Throws ShapeError.
io::Bytes encode_png(const Tensor& image);

/// make_grid, then encode_png, into a file.
void save_image(const Tensor& images, const std::filesystem::path& path, const GridOptions& options = {});

}  // namespace levin
