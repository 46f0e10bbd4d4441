#include <levin/nn/pooling.h>

#include "layer_checks.h"

namespace levin::nn {

MaxPool2d::MaxPool2d(Tuple<2> kernel, const Options& o) : kernel_size(kernel), options(o) {}
Tensor MaxPool2d::forward(const Tensor& x) { return max_pool2d(x, kernel_size, options); }
std::string MaxPool2d::extra_repr() const {
  return fmt::format("kernel_size={}, stride={}, padding={}, dilation={}, ceil_mode={}", short_text(kernel_size),
                     short_text(options.stride.value_or(kernel_size)), short_text(options.padding),
                     short_text(options.dilation), yes_no(options.ceil_mode));
}

AvgPool2d::AvgPool2d(Tuple<2> kernel, const Options& o) : kernel_size(kernel), options(o) {}
Tensor AvgPool2d::forward(const Tensor& x) { return avg_pool2d(x, kernel_size, options); }
std::string AvgPool2d::extra_repr() const {
  return fmt::format("kernel_size={}, stride={}, padding={}", short_text(kernel_size),
                     short_text(options.stride.value_or(kernel_size)), short_text(options.padding));
}

namespace {

template <class P>
std::string pool_repr(const P& pool) {
  return fmt::format("kernel_size={}, stride={}, padding={}", short_text(pool.kernel_size),
                     short_text(pool.options.stride.value_or(pool.kernel_size)), short_text(pool.options.padding));
}

}  // namespace

std::string MaxPool1d::extra_repr() const { return pool_repr(*this); }
std::string MaxPool3d::extra_repr() const { return pool_repr(*this); }
std::string AvgPool1d::extra_repr() const { return pool_repr(*this); }
std::string AvgPool3d::extra_repr() const { return pool_repr(*this); }

std::string AdaptiveAvgPool1d::extra_repr() const { return "output_size=" + short_text(output_size); }
std::string AdaptiveAvgPool2d::extra_repr() const { return "output_size=" + short_text(output_size); }
std::string AdaptiveAvgPool3d::extra_repr() const { return "output_size=" + short_text(output_size); }
std::string AdaptiveMaxPool1d::extra_repr() const { return "output_size=" + short_text(output_size); }
std::string AdaptiveMaxPool2d::extra_repr() const { return "output_size=" + short_text(output_size); }
std::string AdaptiveMaxPool3d::extra_repr() const { return "output_size=" + short_text(output_size); }

#define LEVIN_LP_POOL(Class, N)                                                                                 \
  Class::Class(double p, Tuple<N> kernel, const Options& o) : norm_type(p), kernel_size(kernel), options(o) {}  \
  std::string Class::extra_repr() const {                                                                       \
    return fmt::format("norm_type={}, kernel_size={}, stride={}, ceil_mode={}", norm_type,                       \
                       short_text(kernel_size), short_text(options.stride.value_or(kernel_size)),                \
                       yes_no(options.ceil_mode));                                                               \
  }
LEVIN_LP_POOL(LPPool1d, 1)
LEVIN_LP_POOL(LPPool2d, 2)
LEVIN_LP_POOL(LPPool3d, 3)
#undef LEVIN_LP_POOL

#define LEVIN_CONSTRUCTOR(Class, N) \
  Class::Class(Tuple<N> kernel, const Options& o) : kernel_size(kernel), options(o) {}
LEVIN_CONSTRUCTOR(MaxPool1d, 1)
LEVIN_CONSTRUCTOR(MaxPool3d, 3)
LEVIN_CONSTRUCTOR(AvgPool1d, 1)
LEVIN_CONSTRUCTOR(AvgPool3d, 3)
#undef LEVIN_CONSTRUCTOR
AdaptiveAvgPool1d::AdaptiveAvgPool1d(Tuple<1> size) : output_size(size) {}
AdaptiveAvgPool2d::AdaptiveAvgPool2d(Tuple<2> size) : output_size(size) {}
AdaptiveAvgPool3d::AdaptiveAvgPool3d(Tuple<3> size) : output_size(size) {}
AdaptiveMaxPool1d::AdaptiveMaxPool1d(Tuple<1> size) : output_size(size) {}
AdaptiveMaxPool2d::AdaptiveMaxPool2d(Tuple<2> size) : output_size(size) {}
AdaptiveMaxPool3d::AdaptiveMaxPool3d(Tuple<3> size) : output_size(size) {}
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
