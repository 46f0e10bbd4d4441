#include <levin/nn/pooling.h>

#include "layer_checks.h"

namespace levin::nn {

#define LEVIN_CONSTRUCTOR(Class, N) \
  Class::Class(Tuple<N> kernel, const Options& o) : kernel_size(kernel), options(o) {}
LEVIN_CONSTRUCTOR(MaxPool1d, 1)
LEVIN_CONSTRUCTOR(MaxPool2d, 2)
LEVIN_CONSTRUCTOR(MaxPool3d, 3)
LEVIN_CONSTRUCTOR(AvgPool1d, 1)
LEVIN_CONSTRUCTOR(AvgPool2d, 2)
LEVIN_CONSTRUCTOR(AvgPool3d, 3)
#undef LEVIN_CONSTRUCTOR

std::string MaxPool1d::extra_repr() const { return pool_text(*this); }
std::string MaxPool2d::extra_repr() const {
  return fmt::format("{}, dilation={}, ceil_mode={}", pool_text(*this), short_text(options.dilation),
                     yes_no(options.ceil_mode));
}
std::string MaxPool3d::extra_repr() const { return pool_text(*this); }
std::string AvgPool1d::extra_repr() const { return pool_text(*this); }
std::string AvgPool2d::extra_repr() const { return pool_text(*this); }
std::string AvgPool3d::extra_repr() const { return pool_text(*this); }

#define LEVIN_LP_POOL(Class, N)                                                                                     \
  Class::Class(double p, Tuple<N> kernel, const Options& o) : norm_type(p), kernel_size(kernel), options(o) {}      \
  std::string Class::extra_repr() const {                                                                           \
    return fmt::format("norm_type={}, kernel_size={}, stride={}, ceil_mode={}", norm_type, short_text(kernel_size), \
                       short_text(options.stride.value_or(kernel_size)), yes_no(options.ceil_mode));                \
  }
LEVIN_LP_POOL(LPPool1d, 1)
LEVIN_LP_POOL(LPPool2d, 2)
LEVIN_LP_POOL(LPPool3d, 3)
#undef LEVIN_LP_POOL

#define LEVIN_ADAPTIVE_POOL(Class, N)                \
  Class::Class(Tuple<N> size) : output_size(size) {} \
  std::string Class::extra_repr() const { return "output_size=" + short_text(output_size); }
LEVIN_ADAPTIVE_POOL(AdaptiveAvgPool1d, 1)
LEVIN_ADAPTIVE_POOL(AdaptiveAvgPool2d, 2)
LEVIN_ADAPTIVE_POOL(AdaptiveAvgPool3d, 3)
LEVIN_ADAPTIVE_POOL(AdaptiveMaxPool1d, 1)
LEVIN_ADAPTIVE_POOL(AdaptiveMaxPool2d, 2)
LEVIN_ADAPTIVE_POOL(AdaptiveMaxPool3d, 3)
#undef LEVIN_ADAPTIVE_POOL

PixelShuffle::PixelShuffle(int64_t factor) : upscale_factor(factor) {}
PixelUnshuffle::PixelUnshuffle(int64_t factor) : downscale_factor(factor) {}
ChannelShuffle::ChannelShuffle(int64_t n) : groups(n) {}
Upsample::Upsample(const Options& o) : options(o) {}
Pad::Pad(const Shape& p, const Options& o) : pads(p), options(o) {}

namespace {

Upsample::Options with_mode(Upsample::Options o, ResizeMode mode, bool align_corners) {
  o.mode = mode;
  o.align_corners = align_corners;
  return o;
}

}  // namespace

UpsamplingNearest2d::UpsamplingNearest2d(const Options& o) : Upsample(with_mode(o, ResizeMode::nearest, false)) {}
UpsamplingBilinear2d::UpsamplingBilinear2d(const Options& o) : Upsample(with_mode(o, ResizeMode::linear, true)) {}
std::unique_ptr<Module> UpsamplingNearest2d::fresh() const { return std::make_unique<UpsamplingNearest2d>(options); }
std::unique_ptr<Module> UpsamplingBilinear2d::fresh() const { return std::make_unique<UpsamplingBilinear2d>(options); }

std::string Pad::extra_repr() const { return to_string(pads); }

std::string Upsample::extra_repr() const {
  const char* const modes[] = {"nearest", "nearest-exact", "linear", "bicubic", "area"};
  const std::string mode = fmt::format("mode={}", modes[static_cast<int>(options.mode)]);
  if (!options.size.empty()) return fmt::format("size={}, {}", to_string(options.size), mode);
  return fmt::format("scale_factor={}, {}", fmt::join(options.scale_factor, ", "), mode);
}

}  // namespace levin::nn
