#pragma once
// Padding layers by mode, windows of images as columns, and the way back from max pooling. Names and defaults are
// PyTorch's.

#include <levin/nn/layer.h>
#include <levin/nn/pooling.h>

namespace levin::nn {

// Layers that pad N axes by (before, after) of the last axis, then of the one before it, or by one number everywhere.
// The input has (B, C) or (C) before these axes; ShapeError otherwise. Bodies are in windows.cpp.
#define LEVIN_PAD(Class, N)                          \
  class Class : public Pad {                         \
   public:                                           \
    explicit Class(Tuple<2 * N> padding);            \
    Tensor forward(const Tensor& x) override;        \
    std::unique_ptr<Module> fresh() const override;  \
  };
LEVIN_PAD(ZeroPad1d, 1)
LEVIN_PAD(ZeroPad2d, 2)
LEVIN_PAD(ZeroPad3d, 3)
LEVIN_PAD(ReflectionPad1d, 1)
LEVIN_PAD(ReflectionPad2d, 2)
LEVIN_PAD(ReflectionPad3d, 3)
LEVIN_PAD(ReplicationPad1d, 1)
LEVIN_PAD(ReplicationPad2d, 2)
LEVIN_PAD(ReplicationPad3d, 3)
LEVIN_PAD(CircularPad1d, 1)
LEVIN_PAD(CircularPad2d, 2)
LEVIN_PAD(CircularPad3d, 3)
#undef LEVIN_PAD
#define LEVIN_CONSTANT_PAD(Class, N)                 \
  class Class : public Pad {                         \
   public:                                           \
    Class(Tuple<2 * N> padding, double value);       \
    Tensor forward(const Tensor& x) override;        \
    std::unique_ptr<Module> fresh() const override;  \
  };
LEVIN_CONSTANT_PAD(ConstantPad1d, 1)
LEVIN_CONSTANT_PAD(ConstantPad2d, 2)
LEVIN_CONSTANT_PAD(ConstantPad3d, 3)
#undef LEVIN_CONSTANT_PAD

/// See levin::unfold: (B, C, H, W) to (B, C kh kw, windows).
class Unfold : public Layer<Unfold> {
 public:
  using Options = UnfoldOptions;
  explicit Unfold(Tuple<2> kernel, const Options& o = {});
  Tensor forward(const Tensor& x) override { return unfold(x, kernel_size, options); }
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(kernel_size, options);
  }

  const Tuple<2> kernel_size;
  const Options options;
};

/// See levin::fold: (B, C kh kw, windows) to (B, C, H, W).
class Fold : public Layer<Fold> {
 public:
  using Options = UnfoldOptions;
  Fold(Tuple<2> size, Tuple<2> kernel, const Options& o = {});
  Tensor forward(const Tensor& x) override { return fold(x, output_size, kernel_size, options); }
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(output_size, kernel_size, options);
  }

  const Tuple<2> output_size, kernel_size;
  const Options options;
};

/// Puts x at the positions of max_pool*_with_indices, with zeros elsewhere. Without `output_size`, the spatial sizes,
/// the result is the smallest input that gives x's sizes.
template <std::size_t N>
struct MaxUnpoolOptions {
  std::optional<Tuple<N>> stride{};  ///< defaults to the kernel's size
  Tuple<N> padding = 0;
};
#define LEVIN_MAX_UNPOOL(Class, N)                                                                        \
  class Class : public Layer<Class> {                                                                     \
   public:                                                                                                \
    using Options = MaxUnpoolOptions<N>;                                                                  \
    explicit Class(Tuple<N> kernel, const Options& o = {});                                               \
    Tensor forward(const Tensor& x, const Tensor& indices, const std::optional<Tuple<N>>& output_size = {}); \
    std::string extra_repr() const override;                                                              \
    template <class F>                                                                                    \
    auto with_arguments(F construct) const {                                                              \
      return construct(kernel_size, options);                                                             \
    }                                                                                                     \
    const Tuple<N> kernel_size;                                                                           \
    const Options options;                                                                                \
  };
LEVIN_MAX_UNPOOL(MaxUnpool1d, 1)
LEVIN_MAX_UNPOOL(MaxUnpool2d, 2)
LEVIN_MAX_UNPOOL(MaxUnpool3d, 3)
#undef LEVIN_MAX_UNPOOL

}  // namespace levin::nn
