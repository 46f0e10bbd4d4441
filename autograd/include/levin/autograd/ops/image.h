#pragma once
// Resizing, sampling and windows of images (B, C, H, W).

#include <levin/autograd/ops/conv.h>
#include <levin/core/tensor.h>

namespace levin {

enum class ResizeMode { nearest, nearest_exact, linear, bicubic, area };
struct InterpolateOptions {
  Shape size{};                        ///< of the spatial axes; empty: by scale_factor
  std::vector<double> scale_factor{};  ///< one for all axes, or one for each
  ResizeMode mode = ResizeMode::nearest;
  bool align_corners = false;  ///< the corners' centers coincide; linear and bicubic only
};
/// Resizes the spatial axes of x (B, C, ...). `linear` is PyTorch's linear, bilinear or trilinear; `bicubic` (Keys 1981
/// with a = -0.75) needs two spatial axes. Each axis is one product with a matrix of weights. Throws ValueError unless
/// either size or scale_factor is given.
Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

enum class SampleMode { bilinear, nearest };
enum class SamplePadding { zeros, border, reflection };
struct GridSampleOptions {
  SampleMode mode = SampleMode::bilinear;
  SamplePadding padding_mode = SamplePadding::zeros;
  bool align_corners = false;
};
/// Reads x (B, C, H, W) at grid (B, H', W', 2) of (x, y) in [-1, 1]; returns (B, C, H', W'). Jaderberg et al. 2015.
Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options = {});
/// Returns the grid (B, H, W, 2) of the affine maps theta (B, 2, 3); sizes are (B, C, H, W).
Tensor affine_grid(const Tensor& theta, const Shape& sizes, bool align_corners = false);

struct UnfoldOptions {
  Tuple<2> dilation = 1;
  Tuple<2> padding = 0;
  Tuple<2> stride = 1;
};
/// Returns the windows of x (B, C, H, W) as columns, (B, C kh kw, number of windows).
Tensor unfold(const Tensor& x, Tuple<2> kernel, const UnfoldOptions& options = {});
/// Sums columns as those of unfold() into images of output_size {H, W}.
Tensor fold(const Tensor& x, Tuple<2> output_size, Tuple<2> kernel, const UnfoldOptions& options = {});

// Boxes are (N, 4) of (x1, y1, x2, y2).
/// (x2 - x1) (y2 - y1), (N).
Tensor box_area(const Tensor& boxes);
/// Intersection over union of all pairs, (N, M).
Tensor box_iou(const Tensor& a, const Tensor& b);
/// IoU minus the share of the smallest enclosing box that neither covers (Rezatofighi et al. 2019).
Tensor generalized_box_iou(const Tensor& a, const Tensor& b);
/// Returns the positions of the boxes that stay, by falling score: each removes those with a larger IoU than threshold.
Tensor nms(const Tensor& boxes, const Tensor& scores, double iou_threshold);
/// Nms within each class: boxes of different `classes` (N) do not remove each other.
Tensor batched_nms(const Tensor& boxes, const Tensor& scores, const Tensor& classes, double iou_threshold);
enum class BoxFormat { xyxy, xywh, cxcywh };
Tensor box_convert(const Tensor& boxes, BoxFormat from, BoxFormat to);
struct RoiAlignOptions {
  double spatial_scale = 1.0;  ///< from the boxes' coordinates to x's
  int64_t sampling_ratio = 2;  ///< samples along each axis of a cell
  bool aligned = false;        ///< shifts by half a pixel, so that pixels are points
};
/// Means of bilinear samples in the cells of each box: x (B, C, H, W), boxes (N, 5) with the image's number first;
/// returns (N, C, h, w). He et al. 2017.
Tensor roi_align(const Tensor& x, const Tensor& boxes, Tuple<2> output_size, const RoiAlignOptions& options = {});

}  // namespace levin
