#pragma once
// Pooling over lines (B, C, L), images (B, C, H, W) and volumes (B, C, D, H, W), or one of them without B.

#include <levin/autograd/ops/conv.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/core/tensor.h>

#include <array>

namespace levin {

/// Arguments of max_pool1d: stride, padding, dilation and ceil_mode as in MaxPool2dOptions.
struct MaxPool1dOptions {
  std::optional<Tuple<1>> stride{};  ///< defaults to the kernel's size
  Tuple<1> padding = 0;
  Tuple<1> dilation = 1;
  bool ceil_mode = false;
};
/// As max_pool2d: x (B, C, L) or (C, L).
Tensor max_pool1d(const Tensor& x, Tuple<1> kernel, const MaxPool1dOptions& options = {});
/// Arguments of max_pool3d: stride, padding, dilation and ceil_mode as in MaxPool2dOptions.
struct MaxPool3dOptions {
  std::optional<Tuple<3>> stride{};
  Tuple<3> padding = 0;
  Tuple<3> dilation = 1;
  bool ceil_mode = false;
};
/// As max_pool2d: x (B, C, D, H, W) or (C, D, H, W).
Tensor max_pool3d(const Tensor& x, Tuple<3> kernel, const MaxPool3dOptions& options = {});

/// As max_pool2d, and the positions of the maxima in their image, h * W + w (or w of a line), int64, for max_unpool2d.
ValuesIndices max_pool2d_with_indices(const Tensor& x, Tuple<2> kernel, const MaxPool2dOptions& options = {});
ValuesIndices max_pool1d_with_indices(const Tensor& x, Tuple<1> kernel, const MaxPool1dOptions& options = {});
/// As max_pool3d; the positions are (d * H + h) * W + w.
ValuesIndices max_pool3d_with_indices(const Tensor& x, Tuple<3> kernel, const MaxPool3dOptions& options = {});
/// Returns an image of `sizes` {H, W} with x at `indices` and zeros elsewhere; of several values for one place the last
/// one stays.
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, std::array<int64_t, 2> sizes);
/// Returns a line of `size` elements, or a volume of `sizes` {D, H, W}.
Tensor max_unpool1d(const Tensor& x, const Tensor& indices, int64_t size);
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, std::array<int64_t, 3> sizes);

/// Arguments of avg_pool1d: stride, padding, ceil_mode and count_include_pad as in AvgPool2dOptions.
struct AvgPool1dOptions {
  std::optional<Tuple<1>> stride{};
  Tuple<1> padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};
/// As avg_pool2d: x (B, C, L) or (C, L).
Tensor avg_pool1d(const Tensor& x, Tuple<1> kernel, const AvgPool1dOptions& options = {});
/// Arguments of avg_pool3d: stride, padding, ceil_mode and count_include_pad as in AvgPool2dOptions.
struct AvgPool3dOptions {
  std::optional<Tuple<3>> stride{};
  Tuple<3> padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};
/// As avg_pool2d: x (B, C, D, H, W) or (C, D, H, W).
Tensor avg_pool3d(const Tensor& x, Tuple<3> kernel, const AvgPool3dOptions& options = {});

/// Arguments of lp_pool1d: stride and ceil_mode as in AvgPool2dOptions.
struct LpPool1dOptions {
  std::optional<Tuple<1>> stride{};
  bool ceil_mode = false;
};
/// Returns (sum of x^p over the window)^(1 / p), NaN where a negative sum has no such root: x (B, C, L) or (C, L).
Tensor lp_pool1d(const Tensor& x, double p, Tuple<1> kernel, const LpPool1dOptions& options = {});
/// Arguments of lp_pool2d: stride and ceil_mode as in AvgPool2dOptions.
struct LpPool2dOptions {
  std::optional<Tuple<2>> stride{};
  bool ceil_mode = false;
};
/// As lp_pool1d: x (B, C, H, W) or (C, H, W).
Tensor lp_pool2d(const Tensor& x, double p, Tuple<2> kernel, const LpPool2dOptions& options = {});
/// Arguments of lp_pool3d: stride and ceil_mode as in AvgPool2dOptions.
struct LpPool3dOptions {
  std::optional<Tuple<3>> stride{};
  bool ceil_mode = false;
};
/// As lp_pool1d: x (B, C, D, H, W) or (C, D, H, W).
Tensor lp_pool3d(const Tensor& x, double p, Tuple<3> kernel, const LpPool3dOptions& options = {});

/// Pool the spatial axes to output_size: output o of n is the mean or the maximum of the inputs from
/// floor(o size / n) to ceil((o + 1) size / n) - 1. Throw ValueError for sizes below 1.
Tensor adaptive_avg_pool1d(const Tensor& x, Tuple<1> output_size);
Tensor adaptive_avg_pool2d(const Tensor& x, Tuple<2> output_size);
Tensor adaptive_avg_pool3d(const Tensor& x, Tuple<3> output_size);
Tensor adaptive_max_pool1d(const Tensor& x, Tuple<1> output_size);
Tensor adaptive_max_pool2d(const Tensor& x, Tuple<2> output_size);
Tensor adaptive_max_pool3d(const Tensor& x, Tuple<3> output_size);
/// The same, with the positions of the maxima, as max_pool2d_with_indices counts them.
ValuesIndices adaptive_max_pool1d_with_indices(const Tensor& x, Tuple<1> output_size);
ValuesIndices adaptive_max_pool2d_with_indices(const Tensor& x, Tuple<2> output_size);
ValuesIndices adaptive_max_pool3d_with_indices(const Tensor& x, Tuple<3> output_size);

}  // namespace levin
