#pragma once
// Pooling, padding and resizing layers. Names and defaults are PyTorch's.

#include <levin/autograd/ops/image.h>
#include <levin/autograd/ops/pool.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/nn/layer.h>

namespace levin::nn {

class MaxPool2d : public Layer<MaxPool2d> {
 public:
  using Options = levin::MaxPool2dOptions;
  explicit MaxPool2d(Tuple<2> kernel_size, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(kernel_size, options);
  }

  const Tuple<2> kernel_size;
  const Options options;
};

class AvgPool2d : public Layer<AvgPool2d> {
 public:
  using Options = levin::AvgPool2dOptions;
  explicit AvgPool2d(Tuple<2> kernel_size, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(kernel_size, options);
  }

  const Tuple<2> kernel_size;
  const Options options;
};

// Pools over lines and volumes: class, function, options and number of axes.
#define LEVIN_POOL(Class, function, N)                                                     \
  class Class : public Layer<Class> {                                                      \
   public:                                                                                 \
    using Options = levin::Class##Options;                                                 \
    explicit Class(Tuple<N> kernel, const Options& o = {});                                \
    Tensor forward(const Tensor& x) override { return function(x, kernel_size, options); } \
    std::string extra_repr() const override;                                               \
    template <class F>                                                                     \
    auto with_arguments(F construct) const {                                               \
      return construct(kernel_size, options);                                              \
    }                                                                                      \
    const Tuple<N> kernel_size;                                                            \
    const Options options;                                                                 \
  };
LEVIN_POOL(MaxPool1d, max_pool1d, 1)
LEVIN_POOL(MaxPool3d, max_pool3d, 3)
LEVIN_POOL(AvgPool1d, avg_pool1d, 1)
LEVIN_POOL(AvgPool3d, avg_pool3d, 3)
#undef LEVIN_POOL

// Pools by the p-norm, here called norm_type.
#define LEVIN_LP_POOL(Class, Kind, function, N)                                                       \
  class Class : public Layer<Class> {                                                                 \
   public:                                                                                            \
    using Options = levin::Kind##Options;                                                             \
    Class(double p, Tuple<N> kernel, const Options& o = {});                                          \
    Tensor forward(const Tensor& x) override { return function(x, norm_type, kernel_size, options); } \
    std::string extra_repr() const override;                                                          \
    template <class F>                                                                                \
    auto with_arguments(F construct) const {                                                          \
      return construct(norm_type, kernel_size, options);                                              \
    }                                                                                                 \
    const double norm_type;                                                                           \
    const Tuple<N> kernel_size;                                                                       \
    const Options options;                                                                            \
  };
LEVIN_LP_POOL(LPPool1d, LpPool1d, lp_pool1d, 1)
LEVIN_LP_POOL(LPPool2d, LpPool2d, lp_pool2d, 2)
LEVIN_LP_POOL(LPPool3d, LpPool3d, lp_pool3d, 3)
#undef LEVIN_LP_POOL

// Pools to a given size.
#define LEVIN_ADAPTIVE_POOL(Class, function, N)                                   \
  class Class : public Layer<Class> {                                             \
   public:                                                                        \
    explicit Class(Tuple<N> size);                                                \
    Tensor forward(const Tensor& x) override { return function(x, output_size); } \
    std::string extra_repr() const override;                                      \
    template <class F>                                                            \
    auto with_arguments(F construct) const {                                      \
      return construct(output_size);                                              \
    }                                                                             \
    const Tuple<N> output_size;                                                   \
  };
LEVIN_ADAPTIVE_POOL(AdaptiveAvgPool1d, adaptive_avg_pool1d, 1)
LEVIN_ADAPTIVE_POOL(AdaptiveAvgPool2d, adaptive_avg_pool2d, 2)
LEVIN_ADAPTIVE_POOL(AdaptiveAvgPool3d, adaptive_avg_pool3d, 3)
LEVIN_ADAPTIVE_POOL(AdaptiveMaxPool1d, adaptive_max_pool1d, 1)
LEVIN_ADAPTIVE_POOL(AdaptiveMaxPool2d, adaptive_max_pool2d, 2)
LEVIN_ADAPTIVE_POOL(AdaptiveMaxPool3d, adaptive_max_pool3d, 3)
#undef LEVIN_ADAPTIVE_POOL

/// Pads the last axes; pads are pairs (before, after) from the last axis backwards.
struct PadOptions {
  PadMode mode = PadMode::constant;
  double value = 0.0;
};
class Pad : public Layer<Pad> {
 public:
  using Options = PadOptions;
  explicit Pad(const Shape& pads_, const Options& o = {});
  Tensor forward(const Tensor& x) override { return pad(x, pads, options.mode, options.value); }
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(pads, options);
  }

  const Shape pads;
  const Options options;
};

/// See levin::interpolate.
class Upsample : public Layer<Upsample> {
 public:
  using Options = InterpolateOptions;
  explicit Upsample(const Options& o);
  Tensor forward(const Tensor& x) override { return interpolate(x, options); }
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(options);
  }

  const Options options;
};

/// Upsample of images to a size or by a factor, by the nearest pixel or bilinearly between the corners.
class UpsamplingNearest2d : public Upsample {
 public:
  explicit UpsamplingNearest2d(const Options& o);
  std::unique_ptr<Module> fresh() const override;
};
class UpsamplingBilinear2d : public Upsample {
 public:
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
    template <class F>                                                                   \
    auto with_arguments(F construct) const {                                             \
      return construct(name);                                                            \
    }                                                                                    \
    const int64_t name;                                                                  \
  };
LEVIN_NUMBER_LAYER(PixelShuffle, pixel_shuffle, upscale_factor)
LEVIN_NUMBER_LAYER(PixelUnshuffle, pixel_unshuffle, downscale_factor)
LEVIN_NUMBER_LAYER(ChannelShuffle, channel_shuffle, groups)
#undef LEVIN_NUMBER_LAYER

}  // namespace levin::nn
