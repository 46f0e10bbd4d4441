#pragma once
// Images: PNG and JPEG files, grids of images, folders of classes. An image is uint8 (C, H, W), as torchvision's
// read_image gives it.

#include <levin/data/dataset.h>

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace levin::data {

/// Channels of a decoded image, as torchvision's ImageReadMode.
enum class ImageReadMode { unchanged, gray, gray_alpha, rgb, rgb_alpha };

/// Decodes PNG or JPEG, told apart by the first bytes. 16-bit PNG keeps its upper bytes; palettes become colours. Gray
/// from colour is 0.299 R + 0.587 G + 0.114 B. Throws IoError, which begins with `name`, for damaged data and for other
/// formats.
Tensor decode_image(std::span<const std::byte> bytes, ImageReadMode mode = ImageReadMode::unchanged,
                    const std::string& name = "the image");
/// Reads and decodes an image file. Throws IoError for a missing file, and as decode_image.
Tensor read_image(const std::string& path, ImageReadMode mode = ImageReadMode::unchanged);

/// Encodes uint8 (C, H, W) with 1 to 4 channels (gray, gray with alpha, RGB, RGB with alpha) as PNG. Throws ShapeError,
/// DTypeError. The bytes depend on the image alone.
std::string encode_png(const Tensor& image, int compression_level = 6);
/// Writes a PNG file atomically; throws IoError.
void write_png(const std::string& path, const Tensor& image, int compression_level = 6);

/// torchvision's arguments of make_grid and save_image, with its defaults.
struct GridOptions {
  int64_t nrow = 8;                                        ///< images in a row
  int64_t padding = 2;                                     ///< pixels between and around them
  bool normalize = false;                                  ///< shift and scale to [0, 1] by value_range
  std::optional<std::pair<double, double>> value_range{};  ///< the smallest and the largest value if absent
  bool scale_each = false;                                 ///< a range for each image instead of one for all
  double pad_value = 0;                                    ///< value of the pixels between them
};

/// Arranges images (B, C, H, W), (C, H, W) or (H, W), of floating type or uint8 with 1 or 3 channels, in one image
/// (3, H', W'). A single image gets no frame. The result has the input's type, or float32 if normalized. Throws
/// ShapeError.
Tensor make_grid(const Tensor& tensor, const GridOptions& options = {});
/// Arranges a list of images of one shape.
Tensor make_grid(std::span<const Tensor> images, const GridOptions& options = {});
/// Converts floating values in [0, 1] to round(255 x), clamped, with NaN as 0; uint8 is returned unchanged.
Tensor to_uint8(const Tensor& image);
/// Writes make_grid(tensor, options) as PNG, converted by to_uint8.
void save_image(const Tensor& tensor, const std::string& path, const GridOptions& options = {});

/// A folder with one folder per class, which holds PNG and JPEG images at any depth, as torchvision's ImageFolder.
/// Classes are numbered in the order of their names. A sample is the image after `transform` and its label, int64 ().
class ImageFolder final : public Dataset {
 public:
  /// Lists the files and reads none. `transform` gets uint8 (3, H, W) and must return images of one size for default
  /// batches: Compose{RandomResizedCrop(64), RandomHorizontalFlip(), ToFloat()}. Throws IoError for a missing folder,
  /// one without classes, and a class without images.
  explicit ImageFolder(const std::string& root, Transform transform = ToFloat{},
                       ImageReadMode mode = ImageReadMode::rgb);
  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  Sample get(int64_t index, Generator& rng) const override;
  /// Names of the classes, in the order of their numbers.
  const std::vector<std::string>& classes() const { return classes_; }
  /// Paths of the images, and their labels, in the order of the samples.
  const std::vector<std::string>& files() const { return files_; }
  const std::vector<int64_t>& targets() const { return targets_; }

 private:
  Transform transform_;
  ImageReadMode mode_;
  std::vector<std::string> classes_;
  std::vector<std::string> files_;
  std::vector<int64_t> targets_;
};

}  // namespace levin::data
