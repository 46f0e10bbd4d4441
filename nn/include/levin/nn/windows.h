#pragma once
// Padding layers by mode, windows of images as columns, and the way back from max pooling. Names and defaults are
// PyTorch's.

#include <levin/nn/layer.h>
#include <levin/nn/pooling.h>

namespace levin::nn {

// Layers that pad N axes by (before, after) of the last axis, then of the one before it, or by one number everywhere.
// The input has (B, C) or (C) before these axes; forward throws ShapeError otherwise. See Pad for the modes and their
// errors. Bodies are in windows.cpp.
#define LEVIN_PAD(Class, N)                                                           \
  class Class : public Pad {                                                          \
   public:                                                                            \
    /** Pairs (before, after) from the last axis backwards, or one number for all. */ \
    explicit Class(Tuple<2 * N> padding);                                             \
    Tensor forward(const Tensor& x) override;                                         \
    std::unique_ptr<Module> fresh() const override;                                   \
  };
/// Pads the last axis of (B, C, L) or (C, L) with zeros.
LEVIN_PAD(ZeroPad1d, 1)
/// Pads the last two axes of (B, C, H, W) or (C, H, W) with zeros.
LEVIN_PAD(ZeroPad2d, 2)
/// Pads the last three axes of (B, C, D, H, W) or (C, D, H, W) with zeros.
LEVIN_PAD(ZeroPad3d, 3)
/// Pads the last axis of (B, C, L) or (C, L) with the elements mirrored without their border.
LEVIN_PAD(ReflectionPad1d, 1)
/// Pads the last two axes of (B, C, H, W) or (C, H, W) with the elements mirrored without their border.
LEVIN_PAD(ReflectionPad2d, 2)
/// Pads the last three axes of (B, C, D, H, W) or (C, D, H, W) with the elements mirrored without their border.
LEVIN_PAD(ReflectionPad3d, 3)
/// Pads the last axis of (B, C, L) or (C, L) with the nearest element.
LEVIN_PAD(ReplicationPad1d, 1)
/// Pads the last two axes of (B, C, H, W) or (C, H, W) with the nearest element.
LEVIN_PAD(ReplicationPad2d, 2)
/// Pads the last three axes of (B, C, D, H, W) or (C, D, H, W) with the nearest element.
LEVIN_PAD(ReplicationPad3d, 3)
/// Pads the last axis of (B, C, L) or (C, L) with the elements from the other end.
LEVIN_PAD(CircularPad1d, 1)
/// Pads the last two axes of (B, C, H, W) or (C, H, W) with the elements from the other end.
LEVIN_PAD(CircularPad2d, 2)
/// Pads the last three axes of (B, C, D, H, W) or (C, D, H, W) with the elements from the other end.
LEVIN_PAD(CircularPad3d, 3)
#undef LEVIN_PAD
#define LEVIN_CONSTANT_PAD(Class, N)                                                  \
  class Class : public Pad {                                                          \
   public:                                                                            \
    /** Pairs (before, after) from the last axis backwards, or one number for all. */ \
    Class(Tuple<2 * N> padding, double value);                                        \
    Tensor forward(const Tensor& x) override;                                         \
    std::unique_ptr<Module> fresh() const override;                                   \
  };
/// Pads the last axis of (B, C, L) or (C, L) with `value`.
LEVIN_CONSTANT_PAD(ConstantPad1d, 1)
/// Pads the last two axes of (B, C, H, W) or (C, H, W) with `value`.
LEVIN_CONSTANT_PAD(ConstantPad2d, 2)
/// Pads the last three axes of (B, C, D, H, W) or (C, D, H, W) with `value`.
LEVIN_CONSTANT_PAD(ConstantPad3d, 3)
#undef LEVIN_CONSTANT_PAD

/// Returns the windows of images as columns: (B, C, H, W) to (B, C kh kw, number of windows), row by row.
class Unfold : public Layer<Unfold> {
 public:
  using Options = UnfoldOptions;
  /// `kernel` is the size {kh, kw} of the windows.
  explicit Unfold(Tuple<2> kernel, const Options& o = {});
  Tensor forward(const Tensor& x) override { return unfold(x, kernel_size, options); }
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(kernel_size, options); }

  const Tuple<2> kernel_size;  ///< {kh, kw}
  const Options options;
};

/// Sums columns as those of Unfold into images of output_size: (B, C kh kw, number of windows) to (B, C, H, W). forward
/// throws ShapeError for other numbers of rows or columns.
class Fold : public Layer<Fold> {
 public:
  using Options = UnfoldOptions;
  /// `size` is the size {H, W} of the images, `kernel` that of the windows, {kh, kw}.
  Fold(Tuple<2> size, Tuple<2> kernel, const Options& o = {});
  Tensor forward(const Tensor& x) override { return fold(x, output_size, kernel_size, options); }
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(output_size, kernel_size, options); }

  const Tuple<2> output_size, kernel_size;  ///< {H, W} of the images, and {kh, kw} of the windows
  const Options options;
};

/// Options of MaxUnpool1d, MaxUnpool2d and MaxUnpool3d: those of the pool.
template <std::size_t N>
struct MaxUnpoolOptions {
  std::optional<Tuple<N>> stride{};  ///< defaults to the kernel's size
  Tuple<N> padding = 0;              ///< elements added on each side
};
// Layers that undo a max pool over N axes, with zeros where no maximum was. Without `output_size`, the spatial sizes,
// the result is the smallest input that gives x's sizes; forward throws ValueError for sizes that differ from that by a
// stride or more, and ShapeError for an x that does not fit.
#define LEVIN_MAX_UNPOOL(Class, N)                                                                        \
  class Class : public Layer<Class> {                                                                     \
   public:                                                                                                \
    using Options = MaxUnpoolOptions<N>;                                                                  \
    /** `kernel` is the size of the pool's windows. */                                                    \
    explicit Class(Tuple<N> kernel, const Options& o = {});                                               \
    Tensor forward(const Tensor& x, const Tensor& indices, const std::optional<Tuple<N>>& output_size = {}); \
    std::string extra_repr() const override;                                                              \
    auto with_arguments(auto construct) const { return construct(kernel_size, options); }                 \
    const Tuple<N> kernel_size;                                                                           \
    const Options options;                                                                                \
  };
/// Puts x, (B, C, L) or (C, L), at the `indices` of max_pool1d_with_indices, with zeros elsewhere. kernel_size is that
/// of the pool; the result has `output_size`, or the smallest that gives x's sizes.
LEVIN_MAX_UNPOOL(MaxUnpool1d, 1)
/// Puts x, (B, C, H, W) or (C, H, W), at the `indices` of max_pool2d_with_indices, with zeros elsewhere. kernel_size is
/// that of the pool; the result has `output_size`, or the smallest that gives x's sizes.
LEVIN_MAX_UNPOOL(MaxUnpool2d, 2)
/// Puts x, (B, C, D, H, W) or (C, D, H, W), at the `indices` of max_pool3d_with_indices, with zeros elsewhere.
/// kernel_size is that of the pool; the result has `output_size`, or the smallest that gives x's sizes.
LEVIN_MAX_UNPOOL(MaxUnpool3d, 3)
#undef LEVIN_MAX_UNPOOL

}  // namespace levin::nn
