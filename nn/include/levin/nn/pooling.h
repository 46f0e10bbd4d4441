#pragma once
// Pooling, padding and resizing layers. Names and defaults are PyTorch's. Pools throw ShapeError for an input or a
// window that does not fit, DTypeError for an input that is not floating, and ValueError for a padding of more than
// half of the kernel.

#include <levin/autograd/ops/image.h>
#include <levin/autograd/ops/pool.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/nn/layer.h>

namespace levin::nn {

// Pools over windows: class, function and number of axes.
#define LEVIN_POOL(Class, function, N)                                                     \
  class Class : public Layer<Class> {                                                      \
   public:                                                                                 \
    using Options = levin::Class##Options;                                                 \
    /** `kernel` is the size of the windows. */                                            \
    explicit Class(Tuple<N> kernel, const Options& o = {});                                \
    Tensor forward(const Tensor& x) override { return function(x, kernel_size, options); } \
    std::string extra_repr() const override;                                               \
    auto with_arguments(auto construct) const { return construct(kernel_size, options); }  \
    const Tuple<N> kernel_size;                                                            \
    const Options options;                                                                 \
  };
/// The maximum of each window of kernel_size {height, width} of (B, C, H, W) or (C, H, W); padding counts as minus
/// infinity. An axis of size n becomes floor((n + 2 padding - dilation (k - 1) - 1) / stride) + 1 for a kernel of k;
/// with ceil_mode the quotient is rounded up, if the last window begins inside the input or the padding before it. The
/// stride defaults to kernel_size.
LEVIN_POOL(MaxPool2d, max_pool2d, 2)
/// The maximum of each window of kernel_size of (B, C, L) or (C, L), see MaxPool2d.
LEVIN_POOL(MaxPool1d, max_pool1d, 1)
/// The maximum of each window of kernel_size of (B, C, D, H, W) or (C, D, H, W), see MaxPool2d.
LEVIN_POOL(MaxPool3d, max_pool3d, 3)
/// The mean of each window of kernel_size {height, width} of (B, C, H, W) or (C, H, W); padding counts as zeros, or not
/// at all if options.count_include_pad is false. Sizes are as of MaxPool2d.
LEVIN_POOL(AvgPool2d, avg_pool2d, 2)
/// The mean of each window of kernel_size of (B, C, L) or (C, L), see AvgPool2d.
LEVIN_POOL(AvgPool1d, avg_pool1d, 1)
/// The mean of each window of kernel_size of (B, C, D, H, W) or (C, D, H, W), see AvgPool2d.
LEVIN_POOL(AvgPool3d, avg_pool3d, 3)
#undef LEVIN_POOL

// Pools by the p-norm, here called norm_type.
#define LEVIN_LP_POOL(Class, Kind, function, N)                                                       \
  class Class : public Layer<Class> {                                                                 \
   public:                                                                                            \
    using Options = levin::Kind##Options;                                                             \
    /** `p` is norm_type, `kernel` the size of the windows. */                                        \
    Class(double p, Tuple<N> kernel, const Options& o = {});                                          \
    Tensor forward(const Tensor& x) override { return function(x, norm_type, kernel_size, options); } \
    std::string extra_repr() const override;                                                          \
    auto with_arguments(auto construct) const { return construct(norm_type, kernel_size, options); }  \
    const double norm_type;                                                                           \
    const Tuple<N> kernel_size;                                                                       \
    const Options options;                                                                            \
  };
/// (sum of x^norm_type)^(1 / norm_type) of each window of kernel_size of (B, C, L) or (C, L).
LEVIN_LP_POOL(LPPool1d, LpPool1d, lp_pool1d, 1)
/// (sum of x^norm_type)^(1 / norm_type) of each window of kernel_size of (B, C, H, W) or (C, H, W).
LEVIN_LP_POOL(LPPool2d, LpPool2d, lp_pool2d, 2)
/// (sum of x^norm_type)^(1 / norm_type) of each window of kernel_size of (B, C, D, H, W) or (C, D, H, W).
LEVIN_LP_POOL(LPPool3d, LpPool3d, lp_pool3d, 3)
#undef LEVIN_LP_POOL

// Pools to a given size.
#define LEVIN_ADAPTIVE_POOL(Class, function, N)                                   \
  class Class : public Layer<Class> {                                             \
   public:                                                                        \
    /** `size` is output_size: a number for each spatial axis or one for all. */  \
    explicit Class(Tuple<N> size);                                                \
    Tensor forward(const Tensor& x) override { return function(x, output_size); } \
    std::string extra_repr() const override;                                      \
    auto with_arguments(auto construct) const { return construct(output_size); }  \
    const Tuple<N> output_size;                                                   \
  };
/// Means of nearly equal parts of (B, C, L) or (C, L), so that L becomes output_size: output o of n is the mean of the
/// inputs from floor(o L / n) to ceil((o + 1) L / n), the last one excluded.
LEVIN_ADAPTIVE_POOL(AdaptiveAvgPool1d, adaptive_avg_pool1d, 1)
/// Means of nearly equal parts of (B, C, H, W) or (C, H, W), see AdaptiveAvgPool1d: the spatial axes get output_size.
LEVIN_ADAPTIVE_POOL(AdaptiveAvgPool2d, adaptive_avg_pool2d, 2)
/// Means of nearly equal parts of (B, C, D, H, W) or (C, D, H, W), see AdaptiveAvgPool1d: the spatial axes get
/// output_size.
LEVIN_ADAPTIVE_POOL(AdaptiveAvgPool3d, adaptive_avg_pool3d, 3)
/// Maxima of nearly equal parts of (B, C, L) or (C, L), see AdaptiveAvgPool1d: the spatial axes get output_size.
LEVIN_ADAPTIVE_POOL(AdaptiveMaxPool1d, adaptive_max_pool1d, 1)
/// Maxima of nearly equal parts of (B, C, H, W) or (C, H, W), see AdaptiveAvgPool1d: the spatial axes get output_size.
LEVIN_ADAPTIVE_POOL(AdaptiveMaxPool2d, adaptive_max_pool2d, 2)
/// Maxima of nearly equal parts of (B, C, D, H, W) or (C, D, H, W), see AdaptiveAvgPool1d: the spatial axes get
/// output_size.
LEVIN_ADAPTIVE_POOL(AdaptiveMaxPool3d, adaptive_max_pool3d, 3)
#undef LEVIN_ADAPTIVE_POOL

/// Options of Pad.
struct PadOptions {
  PadMode mode = PadMode::constant;  ///< source of the new elements, see Pad
  double value = 0.0;                ///< for `constant`
};
/// Pads the last axes; pads are pairs (before, after) from the last axis backwards, and negative ones cut. The new
/// elements hold a value (constant), the elements mirrored without their border (reflect), the nearest element
/// (replicate), or those from the other end (circular). forward throws ValueError for pads that do not fit: reflect
/// takes less than the axis's size, circular at most that.
class Pad : public Layer<Pad> {
 public:
  using Options = PadOptions;
  /// `pads_` has two numbers for each axis that is padded.
  explicit Pad(const Shape& pads_, const Options& o = {});
  Tensor forward(const Tensor& x) override { return pad(x, pads, options.mode, options.value); }
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(pads, options); }

  const Shape pads;
  const Options options;
};

/// Resizes the spatial axes of (B, C, ...), one to three, to a size or by factors; see levin::interpolate for the
/// modes. forward throws ValueError unless either size or scale_factor is given.
class Upsample : public Layer<Upsample> {
 public:
  using Options = InterpolateOptions;
  explicit Upsample(const Options& o);
  Tensor forward(const Tensor& x) override { return interpolate(x, options); }
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(options); }

  const Options options;
};

/// Upsample of images (B, C, H, W) by the nearest pixel.
class UpsamplingNearest2d : public Upsample {
 public:
  /// Reads the size or scale_factor of the options; their mode and align_corners are replaced.
  explicit UpsamplingNearest2d(const Options& o);
  std::unique_ptr<Module> fresh() const override;
};
/// Upsample of images (B, C, H, W), bilinear with the corners' centers in place (align_corners).
class UpsamplingBilinear2d : public Upsample {
 public:
  /// Reads the size or scale_factor of the options; their mode and align_corners are replaced.
  explicit UpsamplingBilinear2d(const Options& o);
  std::unique_ptr<Module> fresh() const override;
};

// Layers of one number.
#define LEVIN_NUMBER_LAYER(Class, function, name)                                        \
  class Class : public Layer<Class> {                                                    \
   public:                                                                               \
    explicit Class(int64_t name##_);                                                     \
    Tensor forward(const Tensor& x) override { return function(x, name); }               \
    std::string extra_repr() const override { return #name "=" + std::to_string(name); } \
    auto with_arguments(auto construct) const { return construct(name); }                \
    const int64_t name;                                                                  \
  };
/// Rearranges (*, C r^2, H, W) to (*, C, H r, W r), where r is upscale_factor (Shi et al. 2016).
LEVIN_NUMBER_LAYER(PixelShuffle, pixel_shuffle, upscale_factor)
/// Rearranges (*, C, H r, W r) to (*, C r^2, H, W), where r is downscale_factor.
LEVIN_NUMBER_LAYER(PixelUnshuffle, pixel_unshuffle, downscale_factor)
/// Takes the channels of (B, C, ...) from the `groups` in turn: channel i of group g comes to i groups + g
/// (Zhang et al. 2018).
LEVIN_NUMBER_LAYER(ChannelShuffle, channel_shuffle, groups)
#undef LEVIN_NUMBER_LAYER

}  // namespace levin::nn
