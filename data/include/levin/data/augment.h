#pragma once
// RandAugment and the changes of images that it chooses from.

#include <levin/data/transforms.h>

namespace levin::data {

/// A change of an image, each with the meaning of its magnitude.
enum class Augmentation {
  identity,
  shear_x,        ///< tangent of the angle
  shear_y,        ///< tangent of the angle
  translate_x,    ///< pixels to the right
  translate_y,    ///< pixels down
  rotate,         ///< degrees, counter-clockwise
  brightness,     ///< 0 leaves the image, -1 makes it black
  color,          ///< 0 leaves the image, -1 makes it gray
  contrast,       ///< 0 leaves the image, -1 makes it evenly gray
  sharpness,      ///< 0 leaves the image, -1 blurs it
  posterize,      ///< bits that are kept, up to 8
  solarize,       ///< values from this on are inverted
  auto_contrast,  ///< stretches each channel to 0 to 255; without magnitude
  equalize,       ///< makes the values of each channel equally frequent; without magnitude
};

/// Changes a uint8 image (3, H, W) or (1, H, W) with torchvision's results; pixels that move come from the nearest one
/// or, from outside of the image, are `fill`. Throws DTypeError and ShapeError for other images.
Tensor augment(const Tensor& image, Augmentation change, double magnitude, double fill = 0);

/// Options of RandAugment, with torchvision's names and defaults.
struct RandAugmentOptions {
  int64_t num_ops = 2;              ///< number of changes
  int64_t magnitude = 9;            ///< strength, from 0 to num_magnitude_bins - 1
  int64_t num_magnitude_bins = 31;  ///< number of strengths; the last is the strongest
  double fill = 0;                  ///< value of pixels from outside of the image
};

/// Applies random changes of one strength, each in a random direction (Cubuk et al., "RandAugment: Practical automated
/// data augmentation with a reduced search space", 2019). Takes the images of augment.
class RandAugment {
 public:
  /// Throws ValueError for a negative num_ops and for a magnitude that does not exist.
  explicit RandAugment(const RandAugmentOptions& options = {});
  Tensor operator()(const Tensor& image, Generator& rng) const;

 private:
  RandAugmentOptions options_;
};

}  // namespace levin::data
