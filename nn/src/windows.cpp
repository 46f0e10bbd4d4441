#include <levin/nn/windows.h>

#include "layer_checks.h"

namespace levin::nn {

namespace {

template <std::size_t N>
Shape pads_of(const Tuple<N>& t) {
  Shape pads;
  for (std::size_t i = 0; i < N; ++i) pads.push_back(t[i]);
  return pads;
}

/// The constructor's argument again.
template <std::size_t N>
Tuple<N> padding_of(const Shape& pads) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return Tuple<N>(pads[static_cast<int>(I)]...);
  }(std::make_index_sequence<N>());
}

Tensor padded(const char* layer, const Tensor& x, const Pad& p) {
  const int spatial = p.pads.size() / 2;
  if (x.dim() != spatial + 1 && x.dim() != spatial + 2)
    throw ShapeError(fmt::format("[{}] the input is {}, expected are {} spatial axes after (B, C) or (C).", layer,
                                 to_string(x.sizes()), spatial));
  return pad(x, p.pads, p.options.mode, p.options.value);
}

}  // namespace

#define LEVIN_PAD(Class, N, mode_)                                                              \
  Class::Class(Tuple<2 * N> padding) : Pad(pads_of(padding), {.mode = PadMode::mode_}) {}       \
  Tensor Class::forward(const Tensor& x) { return padded(#Class, x, *this); }                   \
  std::unique_ptr<Module> Class::fresh() const { return std::make_unique<Class>(padding_of<2 * N>(pads)); }
LEVIN_PAD(ZeroPad1d, 1, constant)
LEVIN_PAD(ZeroPad2d, 2, constant)
LEVIN_PAD(ZeroPad3d, 3, constant)
LEVIN_PAD(ReflectionPad1d, 1, reflect)
LEVIN_PAD(ReflectionPad2d, 2, reflect)
LEVIN_PAD(ReflectionPad3d, 3, reflect)
LEVIN_PAD(ReplicationPad1d, 1, replicate)
LEVIN_PAD(ReplicationPad2d, 2, replicate)
LEVIN_PAD(ReplicationPad3d, 3, replicate)
LEVIN_PAD(CircularPad1d, 1, circular)
LEVIN_PAD(CircularPad2d, 2, circular)
LEVIN_PAD(CircularPad3d, 3, circular)
#undef LEVIN_PAD

#define LEVIN_CONSTANT_PAD(Class, N)                                                                     \
  Class::Class(Tuple<2 * N> padding, double value) : Pad(pads_of(padding), {.value = value}) {}          \
  Tensor Class::forward(const Tensor& x) { return padded(#Class, x, *this); }                            \
  std::unique_ptr<Module> Class::fresh() const {                                                         \
    return std::make_unique<Class>(padding_of<2 * N>(pads), options.value);                              \
  }
LEVIN_CONSTANT_PAD(ConstantPad1d, 1)
LEVIN_CONSTANT_PAD(ConstantPad2d, 2)
LEVIN_CONSTANT_PAD(ConstantPad3d, 3)
#undef LEVIN_CONSTANT_PAD

namespace {

std::string unfold_text(const Tuple<2>& kernel, const UnfoldOptions& o) {
  return fmt::format("kernel_size={}, dilation={}, padding={}, stride={}", short_text(kernel), short_text(o.dilation),
                     short_text(o.padding), short_text(o.stride));
}

/// The given sizes, or the smallest input whose windows are x's elements. Given ones may be larger by less than a
/// stride.
template <class Layer, std::size_t N>
std::array<int64_t, N> unpooled_size(const char* name, const Layer& layer, const Tensor& x,
                                     const std::optional<Tuple<N>>& wanted) {
  if (x.dim() != static_cast<int>(N) + 1 && x.dim() != static_cast<int>(N) + 2)
    throw ShapeError(fmt::format("[{}] the input is {}, expected are {} spatial axes after (B, C) or (C).", name,
                                 to_string(x.sizes()), N));
  const Tuple<N> stride = layer.options.stride.value_or(layer.kernel_size);
  std::array<int64_t, N> sizes{};
  for (std::size_t i = 0; i < N; ++i) {
    const int64_t least = (x.size(x.dim() - static_cast<int>(N - i)) - 1) * stride[i] - 2 * layer.options.padding[i] +
                          layer.kernel_size[i];
    sizes[i] = wanted ? (*wanted)[i] : least;
    if (sizes[i] <= least - stride[i] || sizes[i] >= least + stride[i])
      throw ValueError(fmt::format("[{}] output size {} of axis {} is not between {} and {}.", name, sizes[i], i,
                                   least - stride[i] + 1, least + stride[i] - 1));
  }
  return sizes;
}

}  // namespace

Unfold::Unfold(Tuple<2> kernel, const Options& o) : kernel_size(kernel), options(o) {}
std::string Unfold::extra_repr() const { return unfold_text(kernel_size, options); }
Fold::Fold(Tuple<2> size, Tuple<2> kernel, const Options& o) : output_size(size), kernel_size(kernel), options(o) {}
std::string Fold::extra_repr() const {
  return fmt::format("output_size={}, {}", short_text(output_size), unfold_text(kernel_size, options));
}

#define LEVIN_MAX_UNPOOL(Class, N)                                                     \
  Class::Class(Tuple<N> kernel, const Options& o) : kernel_size(kernel), options(o) {} \
  std::string Class::extra_repr() const { return pool_text(*this); }
LEVIN_MAX_UNPOOL(MaxUnpool1d, 1)
LEVIN_MAX_UNPOOL(MaxUnpool2d, 2)
LEVIN_MAX_UNPOOL(MaxUnpool3d, 3)
#undef LEVIN_MAX_UNPOOL

Tensor MaxUnpool1d::forward(const Tensor& x, const Tensor& indices, const std::optional<Tuple<1>>& size) {
  return max_unpool1d(x, indices, unpooled_size("MaxUnpool1d", *this, x, size)[0]);
}
Tensor MaxUnpool2d::forward(const Tensor& x, const Tensor& indices, const std::optional<Tuple<2>>& size) {
  return max_unpool2d(x, indices, unpooled_size("MaxUnpool2d", *this, x, size));
}
Tensor MaxUnpool3d::forward(const Tensor& x, const Tensor& indices, const std::optional<Tuple<3>>& size) {
  return max_unpool3d(x, indices, unpooled_size("MaxUnpool3d", *this, x, size));
}

}  // namespace levin::nn
