#pragma once
// Resizing, sampling and windows of images (B, C, H, W).

#include <levin/autograd/ops/conv.h>
#include <levin/core/tensor.h>

#include <array>

namespace levin {

/// How interpolate computes a pixel.
enum class ResizeMode {
  nearest,        ///< the pixel at the position of its first corner
  nearest_exact,  ///< the pixel at the position of its center
  linear,         ///< interpolated between 2 neighbours along each axis
  bicubic,        ///< interpolated between 4 neighbours along each axis
  area,           ///< mean of the pixels that it covers, as by adaptive_avg_pool
};
/// Arguments of interpolate.
struct InterpolateOptions {
  Shape size{};                        ///< sizes of the spatial axes, or one for all; empty: by scale_factor
  std::vector<double> scale_factor{};  ///< one for all axes, or one for each; the sizes are rounded down
  ResizeMode mode = ResizeMode::nearest;  ///< method
  bool align_corners = false;  ///< the corners' centers coincide; linear and bicubic only
};
/// Resizes the spatial axes of x (B, C, ...). `linear` is PyTorch's linear, bilinear or trilinear; `bicubic` (Keys 1981
/// with a = -0.75) needs two spatial axes. linear and bicubic are a product with a matrix of weights for each axis.
/// x is of a floating type and has one to three spatial axes, else DTypeError and ShapeError are thrown. Throws
/// ValueError unless either size or scale_factor is given.
Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

/// How grid_sample reads between pixels: interpolated between four pixels, or the nearest one.
enum class SampleMode { bilinear, nearest };
/// Values that grid_sample reads outside of the image: 0, the nearest pixel of the border, or the mirrored image.
enum class SamplePadding { zeros, border, reflection };
/// Arguments of grid_sample.
struct GridSampleOptions {
  SampleMode mode = SampleMode::bilinear;             ///< reads between pixels
  SamplePadding padding_mode = SamplePadding::zeros;  ///< reads outside of the image
  bool align_corners = false;  ///< -1 and 1 are the centers of the outermost pixels instead of their outer edges
};
/// Reads x (B, C, H, W) at grid (B, H', W', 2) of positions (column, row), each from -1 to 1 over the image, of x's
/// dtype; returns (B, C, H', W'). Throws ShapeError and DTypeError for tensors that do not fit. Jaderberg et al. 2015.
Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options = {});
/// Returns the grid (B, H, W, 2) of the affine maps theta (B, 2, 3) for grid_sample with the same align_corners; sizes
/// are (B, C, H, W).
Tensor affine_grid(const Tensor& theta, const Shape& sizes, bool align_corners = false);

/// Arguments of unfold and fold; dilation, padding and stride are those of a convolution (Conv2dOptions).
struct UnfoldOptions {
  Tuple<2> dilation = 1;
  Tuple<2> padding = 0;
  Tuple<2> stride = 1;
};
/// Returns the windows of x (B, C, H, W) as columns, (B, C kh kw, number of windows).
Tensor unfold(const Tensor& x, Tuple<2> kernel, const UnfoldOptions& options = {});
/// Sums columns as those of unfold() into images (B, C, H, W) of output_size {H, W}.
Tensor fold(const Tensor& x, Tuple<2> output_size, Tuple<2> kernel, const UnfoldOptions& options = {});

// Boxes are (N, 4) of (x1, y1, x2, y2), with x1 <= x2 and y1 <= y2. Other sizes throw ShapeError.

/// (x2 - x1) (y2 - y1), (N).
Tensor box_area(const Tensor& boxes);
/// Intersection over union (IoU) of all pairs, (N, M).
Tensor box_iou(const Tensor& a, const Tensor& b);
/// IoU minus the share of the smallest enclosing box that neither covers (Rezatofighi et al. 2019).
Tensor generalized_box_iou(const Tensor& a, const Tensor& b);
/// Non-maximum suppression: returns the positions (n) int64 of the boxes that stay, by falling score; each of them
/// removes the later ones with which its IoU is above the threshold. No gradient.
Tensor nms(const Tensor& boxes, const Tensor& scores, double iou_threshold);
/// Nms within each class: boxes of different `classes` (N) do not remove each other.
Tensor batched_nms(const Tensor& boxes, const Tensor& scores, const Tensor& classes, double iou_threshold);
/// Two opposite corners, the first corner and the size, or the center and the size.
enum class BoxFormat { xyxy, xywh, cxcywh };
/// Converts boxes (N, 4) between formats.
Tensor box_convert(const Tensor& boxes, BoxFormat from, BoxFormat to);
/// Returns boxes (..., N, 4) as offsets from `anchors` (N, 4): the difference of the centers over the anchor's size,
/// and the logarithm of the quotient of the sizes, for x and y each, times `weights` (of x, y, width and height).
/// Detectors predict such offsets (Girshick et al. 2014; torchvision's BoxCoder); SSD's weights are {10, 10, 5, 5}.
Tensor encode_boxes(const Tensor& boxes, const Tensor& anchors, const std::array<double, 4>& weights = {1, 1, 1, 1});
/// Returns the boxes (..., N, 4) of offsets as encode_boxes gives. A box is at most 62.5 times as wide or high as its
/// anchor, so that no exponential overflows.
Tensor decode_boxes(const Tensor& offsets, const Tensor& anchors, const std::array<double, 4>& weights = {1, 1, 1, 1});
/// Arguments of roi_align.
struct RoiAlignOptions {
  double spatial_scale = 1.0;  ///< from the boxes' coordinates to x's
  int64_t sampling_ratio = 2;  ///< samples along each axis of a cell
  bool aligned = false;        ///< shifts by half a pixel, so that pixels are points
};
/// Means of bilinear samples in the cells of each box: x (B, C, H, W), boxes (N, 5) with the image's number first;
/// returns (N, C, h, w). He et al. 2017.
Tensor roi_align(const Tensor& x, const Tensor& boxes, Tuple<2> output_size, const RoiAlignOptions& options = {});

}  // namespace levin
