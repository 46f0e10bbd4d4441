#pragma once
// Transforms of one image, (C, H, W) or (H, W). Each is a function object; random ones draw from the generator of the
// sample. Names and meanings are torchvision's. Those that move pixels also take a whole sample and move its boxes and
// masks with the image.

#include <levin/core/generator.h>
#include <levin/core/tensor.h>
#include <levin/data/batch.h>

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace levin::data {

/// A function of an image and of the sample's generator. Several workers call it at the same time.
using Transform = std::function<Tensor(const Tensor& image, Generator& rng)>;

namespace detail {
struct Move;
}

/// Base class of the transforms that move pixels.
class GeometricTransform {
 public:
  virtual ~GeometricTransform() = default;
  /// Returns the moved image, of the same type.
  Tensor operator()(const Tensor& image, Generator& rng) const;
  /// Moves the image of a sample (its first tensor, or "image" in a dictionary) and what belongs to it: "boxes" (N, 4)
  /// of x1, y1, x2, y2 in pixels, which are cut at the edges of the image, and "masks" (N, H, W) or "mask" (H, W),
  /// whose values are taken from the nearest pixel, and are 0 outside. Everything else stays. Throws ShapeError.
  Sample operator()(const Sample& sample, Generator& rng) const;

 protected:
  GeometricTransform() = default;
  GeometricTransform(const GeometricTransform&) = default;
  GeometricTransform& operator=(const GeometricTransform&) = default;
  /// Decides how the pixels of this image move.
  virtual detail::Move draw(const Tensor& image, Generator& rng) const = 0;
};

/// Converts uint8 in [0, 255] to f32 in [0, 1]; floating images are only converted to f32.
struct ToFloat {
  Tensor operator()(const Tensor& image, Generator& rng) const;
};

/// Computes (x - mean) / std of f32 images (C, H, W) or (H, W), with one value per channel or one for all channels.
/// Throws ShapeError for another number of channels.
class Normalize {
 public:
  /// Throws ValueError if the counts differ or a std is 0.
  Normalize(std::vector<float> mean, std::vector<float> std);
  Tensor operator()(const Tensor& image, Generator& rng) const;

 private:
  std::vector<float> mean_, std_;
};

/// Source of the pixels outside of an image: a value, the nearest pixel, or the image mirrored without (reflect) or
/// with (symmetric) its border.
enum class PaddingMode { constant, edge, reflect, symmetric };
/// Value between pixels: that of the nearest one, or a weighted mean of the four around the place.
enum class Interpolation { nearest, bilinear };

/// Adds pixels around the image, whose values `mode` and (for constant) `fill` define; any type.
class Pad final : public GeometricTransform {
 public:
  /// Adds `padding` pixels on every side.
  explicit Pad(int64_t padding, double fill = 0, PaddingMode mode = PaddingMode::constant)
      : Pad(padding, padding, padding, padding, fill, mode) {}
  /// Takes torchvision's order. Throws ValueError for a negative number; a call throws ShapeError if reflect has too
  /// few pixels.
  Pad(int64_t left, int64_t top, int64_t right, int64_t bottom, double fill = 0,
      PaddingMode mode = PaddingMode::constant);
  using GeometricTransform::operator();
  /// Pads an image; no random numbers are needed.
  Tensor operator()(const Tensor& image) const;

 private:
  detail::Move draw(const Tensor& image, Generator& rng) const override;
  int64_t left_, top_, right_, bottom_;
  double fill_;
  PaddingMode mode_;
};

/// Options of RandomCrop.
struct RandomCropOptions {
  bool pad_if_needed = false;                        ///< pad images that are smaller than the window
  double fill = 0;                                   ///< value of added pixels, for constant
  PaddingMode padding_mode = PaddingMode::constant;  ///< source of added pixels
};

/// Cuts out a random (height, width) window after adding `padding` pixels on every side; any type. A call throws
/// ShapeError for an image that is too small.
class RandomCrop final : public GeometricTransform {
 public:
  /// A square window of `size`. Throws ValueError for a window without pixels and a negative padding.
  explicit RandomCrop(int64_t size, int64_t padding = 0) : RandomCrop(size, size, padding) {}
  RandomCrop(int64_t height, int64_t width, int64_t padding, const RandomCropOptions& options = {});

 private:
  detail::Move draw(const Tensor& image, Generator& rng) const override;
  Tensor padded(const Tensor& image, double fill, PaddingMode mode) const;
  int64_t height_, width_, padding_;
  RandomCropOptions options_;
};

/// Cuts out the window in the middle; smaller images are padded with 0. Any type.
class CenterCrop final : public GeometricTransform {
 public:
  /// Throws ValueError for a window without pixels; `size` stands for a square one.
  explicit CenterCrop(int64_t size) : CenterCrop(size, size) {}
  CenterCrop(int64_t height, int64_t width);

 private:
  detail::Move draw(const Tensor& image, Generator& rng) const override;
  int64_t height_, width_;
};

/// Mirrors left and right with probability `p`; any type.
class RandomHorizontalFlip final : public GeometricTransform {
 public:
  /// Throws ValueError for a p outside of [0, 1].
  explicit RandomHorizontalFlip(double p = 0.5);

 private:
  detail::Move draw(const Tensor& image, Generator& rng) const override;
  double p_;
};

/// Mirrors up and down with probability `p`; any type.
class RandomVerticalFlip final : public GeometricTransform {
 public:
  /// Throws ValueError for a p outside of [0, 1].
  explicit RandomVerticalFlip(double p = 0.5);

 private:
  detail::Move draw(const Tensor& image, Generator& rng) const override;
  double p_;
};

/// Resizes an image to (height, width): bilinear takes uint8 (rounded) or f32 and throws DTypeError for others, nearest
/// takes any type. Bilinear weights follow Pillow: with antialias, a pixel of a smaller image is a weighted mean of all
/// pixels that it covers. Throws ValueError for a size below 1.
Tensor resize(const Tensor& image, int64_t height, int64_t width, Interpolation interpolation = Interpolation::bilinear,
              bool antialias = true);

/// Options of Resize.
struct ResizeOptions {
  Interpolation interpolation = Interpolation::bilinear;  ///< nearest for masks in any case
  std::optional<int64_t> max_size{};                      ///< upper limit of the longer edge; with one size only
  bool antialias = true;                                  ///< see resize()
};

/// Resizes an image, uint8 (rounded) or f32; see resize().
class Resize final : public GeometricTransform {
 public:
  /// Makes the shorter edge `size` and keeps the aspect ratio. Throws ValueError for a size below 1 and for a max_size
  /// that is not above it.
  explicit Resize(int64_t size, const ResizeOptions& options = {});
  /// Makes the image (height, width). Throws ValueError for sizes below 1 and for a max_size.
  Resize(int64_t height, int64_t width, const ResizeOptions& options = {});

 private:
  detail::Move draw(const Tensor& image, Generator& rng) const override;
  int64_t height_, width_;  // if width_ is 0, height_ is the size of the shorter edge
  ResizeOptions options_;
};

/// Lower and upper bound, both included.
using Range = std::pair<double, double>;

/// Options of RandomResizedCrop.
struct RandomResizedCropOptions {
  Range scale{0.08, 1.0};                                 ///< part of the area
  Range ratio{3.0 / 4, 4.0 / 3};                          ///< width over height
  Interpolation interpolation = Interpolation::bilinear;  ///< nearest for masks in any case
  bool antialias = true;                                  ///< see resize()
};

/// Resizes a window of random area and aspect ratio to (height, width); uint8 (rounded) or f32. If ten random windows
/// do not fit the image, it takes the largest one in the middle with an allowed aspect ratio (Szegedy et al. 2015).
class RandomResizedCrop final : public GeometricTransform {
 public:
  /// Throws ValueError for sizes below 1 and for ranges that make no sense; `size` stands for a square.
  explicit RandomResizedCrop(int64_t size, const RandomResizedCropOptions& options = {})
      : RandomResizedCrop(size, size, options) {}
  RandomResizedCrop(int64_t height, int64_t width, const RandomResizedCropOptions& options = {});

 private:
  detail::Move draw(const Tensor& image, Generator& rng) const override;
  int64_t height_, width_;
  RandomResizedCropOptions options_;
};

/// Options of RandomRotation.
struct RandomRotationOptions {
  Interpolation interpolation = Interpolation::nearest;  ///< nearest for masks in any case
  double fill = 0;                                       ///< value of pixels from outside of the image
  std::optional<std::pair<double, double>> center{};  ///< x and y in pixels from the upper left corner; absent: middle
};

/// Rotates the image counter-clockwise by an angle from -degrees to degrees, or from a range of degrees, and keeps its
/// size; uint8 or f32.
class RandomRotation final : public GeometricTransform {
 public:
  /// Throws ValueError for a negative number and for a range with the higher number first.
  explicit RandomRotation(double degrees, const RandomRotationOptions& options = {});
  RandomRotation(Range degrees, const RandomRotationOptions& options = {});

 private:
  detail::Move draw(const Tensor& image, Generator& rng) const override;
  Range degrees_;
  RandomRotationOptions options_;
};

/// Changes brightness, contrast, saturation and hue of an image (3, H, W) or (1, H, W), uint8 or f32 from 0 to 1, in
/// random order. A number b means a factor from max(0, 1 - b) to 1 + b; for hue, which has at most 0.5, a shift from -b
/// to b of the full circle.
class ColorJitter {
 public:
  /// Throws ValueError for a negative number and for a hue above 0.5.
  explicit ColorJitter(double brightness = 0, double contrast = 0, double saturation = 0, double hue = 0);
  Tensor operator()(const Tensor& image, Generator& rng) const;

 private:
  double brightness_, contrast_, saturation_, hue_;
};

/// Options of RandomErasing.
struct RandomErasingOptions {
  double p = 0.5;                   ///< probability with which an image is changed
  Range scale{0.02, 0.33};          ///< part of the area
  Range ratio{0.3, 3.3};            ///< height over width
  std::optional<double> value = 0;  ///< absent: normal random numbers (f32 images only)
};

/// Overwrites a random rectangle (Zhong et al., "Random erasing data augmentation", 2017); any type. The image stays as
/// it is if ten random rectangles do not fit it.
class RandomErasing {
 public:
  /// Throws ValueError for a p outside of [0, 1] and for ranges that make no sense.
  explicit RandomErasing(const RandomErasingOptions& options = {});
  Tensor operator()(const Tensor& image, Generator& rng) const;

 private:
  RandomErasingOptions options_;
};

/// Applies transforms of images one after the other.
class Compose {
 public:
  Compose(std::initializer_list<Transform> transforms);
  Tensor operator()(const Tensor& image, Generator& rng) const;

 private:
  std::vector<Transform> transforms_;
};

/// A transform of a whole sample. A function of an image changes the first tensor of a sample ("image" in a
/// dictionary).
class SampleTransform {
 public:
  /// A function of a sample and of its generator.
  using Function = std::function<Sample(const Sample& sample, Generator& rng)>;
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, SampleTransform>) SampleTransform(F&& transform) {  // NOLINT
    if constexpr (std::is_invocable_r_v<Sample, F&, const Sample&, Generator&>)
      apply_ = std::forward<F>(transform);
    else
      apply_ = of_image(std::forward<F>(transform));
  }
  Sample operator()(const Sample& sample, Generator& rng) const { return apply_(sample, rng); }

 private:
  static Function of_image(Transform transform);
  Function apply_;
};

/// Applies transforms of samples and of images one after the other, so that boxes and masks move with the image.
class ComposeSamples {
 public:
  ComposeSamples(std::initializer_list<SampleTransform> transforms);
  Sample operator()(const Sample& sample, Generator& rng) const;

 private:
  std::vector<SampleTransform> transforms_;
};

/// Removes the boxes of a dictionary that are narrower or lower than `min_size` pixels, and their rows of the tensors
/// under `keys` that it has. A call throws IndexError for a sample without "boxes", and ShapeError for tensors with
/// another number of rows.
class SanitizeBoundingBoxes {
 public:
  /// Throws ValueError for a negative min_size.
  explicit SanitizeBoundingBoxes(double min_size = 1, std::vector<std::string> keys = {"labels", "masks"});
  Sample operator()(const Sample& sample, Generator& rng) const;

 private:
  double min_size_;
  std::vector<std::string> keys_;
};

}  // namespace levin::data
