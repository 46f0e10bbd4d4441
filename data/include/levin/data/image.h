#pragma once
// Pictures: PNG and JPEG files, grids of pictures, folders of classes. A picture is uint8 (C, H, W), as torchvision's
// read_image gives it.

#include <levin/data/dataset.h>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace levin::data {

/// torchvision's ImageReadMode: which channels are wanted.
enum class ImageReadMode { unchanged, gray, gray_alpha, rgb, rgb_alpha };

/// The picture in these bytes, PNG or JPEG, told apart by the first bytes. 16-bit PNG keeps its upper bytes; palettes
/// become colours. Gray from colour is 0.299 R + 0.587 G + 0.114 B. Throws IoError for anything else or damaged, headed
/// by `name`.
Tensor decode_image(std::span<const std::byte> bytes, ImageReadMode mode = ImageReadMode::unchanged,
                    const std::string& name = "the picture");
/// The same for a file.
Tensor read_image(const std::filesystem::path& path, ImageReadMode mode = ImageReadMode::unchanged);

/// A PNG file of uint8 (C, H, W) with 1 to 4 channels: gray, gray with alpha, RGB, RGB with alpha. Throws ShapeError,
/// DTypeError. The bytes are a function of the picture alone.
std::string encode_png(const Tensor& image, int compression_level = 6);
/// Whole or not at all; throws IoError.
void write_png(const std::filesystem::path& path, const Tensor& image, int compression_level = 6);

/// torchvision's arguments of make_grid and save_image, with its defaults.
struct GridOptions {
  int64_t nrow = 8;                                        ///< pictures in a row
  int64_t padding = 2;                                     ///< pixels between and around them
  bool normalize = false;                                  ///< shift and scale to [0, 1] by value_range
  std::optional<std::pair<double, double>> value_range{};  ///< the least and greatest value if absent
  bool scale_each = false;                                 ///< a range for each picture instead of one for all
  double pad_value = 0;
};

/// Pictures (B, C, H, W), (C, H, W) or (H, W), of floating type or uint8, in one: (3, H', W') from 1 or 3 channels.
/// One picture alone gets no frame. The result has the input's type, float32 when normalized. Throws ShapeError.
Tensor make_grid(const Tensor& tensor, const GridOptions& options = {});
/// A list of pictures of one shape.
Tensor make_grid(std::span<const Tensor> images, const GridOptions& options = {});
/// Floating values from 0 to 1 as round(255 x), those outside cut off, NaN as 0; uint8 stays.
Tensor to_uint8(const Tensor& picture);
/// The grid as PNG: floating values from 0 to 1 become round(255 x), those outside are cut off; uint8 stays.
void save_image(const Tensor& tensor, const std::filesystem::path& path, const GridOptions& options = {});

/// A folder for each class with PNG and JPEG pictures in it, at any depth, as torchvision's ImageFolder: classes are
/// numbered in the order of their names. Sample: the picture after `transform`, its label int64 ().
class ImageFolder final : public Dataset {
 public:
  /// Lists the files, reads none. `transform` gets uint8 (3, H, W) and must give all one size for default batches:
  /// Compose{RandomResizedCrop(64), RandomHorizontalFlip(), ToFloat()}. Throws IoError for a missing folder, one
  /// without classes, and a class without pictures.
  explicit ImageFolder(const std::filesystem::path& root, Transform transform = ToFloat{},
                       ImageReadMode mode = ImageReadMode::rgb);
  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  Sample get(int64_t index, Generator& rng) const override;
  const std::vector<std::string>& classes() const { return classes_; }
  const std::vector<std::filesystem::path>& files() const { return files_; }
  const std::vector<int64_t>& targets() const { return targets_; }

 private:
  Transform transform_;
  ImageReadMode mode_;
  std::vector<std::string> classes_;
  std::vector<std::filesystem::path> files_;
  std::vector<int64_t> targets_;
};

}  // namespace levin::data
