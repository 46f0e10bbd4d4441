// Resizing, sampling and windows of images.

#include "../../errors.h"
#include "../values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/image.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/pool.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/autograd/trace.h>
#include <levin/kernels/indexing.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace levin {

using namespace ops;

namespace {

void require_images(const char* op, const Tensor& x) {
  if (x.dim() != 4) fail<ShapeError>("[{}] x is {}, expected is (B, C, H, W).", op, x.sizes());
}

// Resizing

/// One spatial axis: its sizes, and inputs per output.
struct Axis {
  int64_t in, out;
  double scale;

  /// Returns where output o lies in the input.
  double position(int64_t o, bool align_corners) const {
    if (align_corners) return out > 1 ? static_cast<double>(o * (in - 1)) / static_cast<double>(out - 1) : 0.0;
    return (static_cast<double>(o) + 0.5) * scale - 0.5;
  }
};

/// Weights of the four neighbours of a point at distance t after the second one (Keys 1981, a = -0.75).
std::array<double, 4> cubic_weights(double t) {
  constexpr double a = -0.75;
  const auto near = [](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

/// Returns the matrix (out, in) of the weights of the inputs for each output.
Tensor resize_matrix(const Axis& axis, ResizeMode mode, bool align_corners, const Tensor& x) {
  std::vector<double> weights(static_cast<std::size_t>(axis.out * axis.in), 0.0);
  const auto add_weight = [&](int64_t o, int64_t i, double w) {
    weights[static_cast<std::size_t>(o * axis.in + std::clamp<int64_t>(i, 0, axis.in - 1))] += w;
  };
  for (int64_t o = 0; o < axis.out; ++o) {
    const double exact = axis.position(o, align_corners);
    const double at = mode == ResizeMode::linear ? std::max(exact, 0.0) : exact;
    const auto low = static_cast<int64_t>(std::floor(at));
    const double t = at - static_cast<double>(low);
    if (mode == ResizeMode::linear) {
      add_weight(o, low, 1 - t);
      add_weight(o, low + 1, t);
    } else {
      const std::array<double, 4> w = cubic_weights(t);
      for (int64_t k = 0; k < 4; ++k) add_weight(o, low - 1 + k, w[static_cast<std::size_t>(k)]);
    }
  }
  return from_data(weights, {axis.out, axis.in}).to(x.device(), x.dtype());
}

Tensor nearest_along(const Tensor& x, int along, const Axis& axis, bool exact) {
  std::vector<int64_t> places;
  for (int64_t o = 0; o < axis.out; ++o) {
    const double at = (static_cast<double>(o) + (exact ? 0.5 : 0.0)) * axis.scale;
    places.push_back(std::min(static_cast<int64_t>(std::floor(at)), axis.in - 1));
  }
  return index_select(x, along, from_data(places, {axis.out}).to(x.device()));
}

std::vector<Axis> resized_axes(const Tensor& x, const InterpolateOptions& o) {
  const int spatial = x.dim() - 2;
  if (spatial < 1 || spatial > 3)
    fail<ShapeError>("[interpolate] x is {}, expected is (B, C, ...) with one to three spatial axes.", x.sizes());
  const std::size_t given = o.size.empty() ? o.scale_factor.size() : static_cast<std::size_t>(o.size.size());
  if (o.size.empty() == o.scale_factor.empty() || (given != 1 && given != static_cast<std::size_t>(spatial)))
    fail<ValueError>("[interpolate] give either size or scale_factor, one number or {}.", spatial);
  std::vector<Axis> axes;
  for (int i = 0; i < spatial; ++i) {
    const int64_t in = x.size(2 + i);
    const auto at = given == 1 ? 0 : i;
    const double factor = o.size.empty() ? o.scale_factor[static_cast<std::size_t>(at)] : 0.0;
    const int64_t out =
        o.size.empty() ? static_cast<int64_t>(std::floor(static_cast<double>(in) * factor)) : o.size[at];
    if (out < 1 || in < 1)
      fail<ValueError>("[interpolate] axis {} of {} cannot be resized to {}.", 2 + i, x.sizes(), out);
    axes.push_back({in, out, o.size.empty() ? 1.0 / factor : static_cast<double>(in) / static_cast<double>(out)});
  }
  return axes;
}

Tensor resized_area(const Tensor& x, const std::vector<Axis>& axes) {
  if (axes.size() == 1) return adaptive_avg_pool1d(x, axes[0].out);
  if (axes.size() == 2) return adaptive_avg_pool2d(x, {axes[0].out, axes[1].out});
  return adaptive_avg_pool3d(x, {axes[0].out, axes[1].out, axes[2].out});
}

}  // namespace

Tensor interpolate(const Tensor& x, const InterpolateOptions& o) {
  LEVIN_TRACE_CALL(interpolate(x, o), "interpolate", {x},
                   {{"mode", o.mode}, {"align_corners", o.align_corners}, {"by_size", o.scale_factor.empty()}});
  check_floating("interpolate", x);
  const std::vector<Axis> axes = resized_axes(x, o);
  const bool smooth = o.mode == ResizeMode::linear || o.mode == ResizeMode::bicubic;
  if (o.align_corners && !smooth) throw ValueError("[interpolate] align_corners is for linear and bicubic only.");
  if (o.mode == ResizeMode::bicubic && axes.size() != 2)
    fail<ShapeError>("[interpolate] bicubic needs (B, C, H, W), x is {}.", x.sizes());
  if (o.mode == ResizeMode::area) return resized_area(x, axes);
  Tensor y = x;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int along = 2 + static_cast<int>(i);
    y = smooth ? movedim(linear(movedim(y, along, -1), resize_matrix(axes[i], o.mode, o.align_corners, x)), -1, along)
               : nearest_along(y, along, axes[i], o.mode == ResizeMode::nearest_exact);
  }
  return y;
}

// Sampling

namespace {

/// Folds coordinates back into [low, high] by reflection at its ends.
Tensor reflected(const Tensor& at, double low, double high) {
  const double span = high - low;
  if (span <= 0) return mul(at, 0.0);
  const Tensor distance = abs(sub(at, low)), turns = floor(div(distance.detach(), span));
  const Tensor rest = sub(distance, mul(turns, span)), odd = ne(remainder(turns, 2.0), 0);
  return add(where(odd, rsub(rest, span), rest), low);
}

/// From [-1, 1] to pixels of an axis, moved inside by the padding.
Tensor pixels(const Tensor& at, int64_t size, const GridSampleOptions& o) {
  const auto n = static_cast<double>(size);
  Tensor p = o.align_corners ? mul(add(at, 1.0), (n - 1) / 2) : sub(mul(add(at, 1.0), n / 2), 0.5);
  if (o.padding_mode == SamplePadding::reflection)
    p = o.align_corners ? reflected(p, 0.0, n - 1) : reflected(p, -0.5, n - 0.5);
  // As in PyTorch, NaN is the first pixel.
  return o.padding_mode == SamplePadding::zeros ? p : clamp(masked_fill(p, isnan(p), 0), 0.0, n - 1);
}

/// Whole pixels (B, n) of images of h x w.
struct Pixels {
  Tensor index;  ///< (B, 1, n) int64, in an image seen as a line
  Tensor valid;  ///< (B, 1, n); the others are outside, or NaN, and have the index 0

  Pixels(const Tensor& row, const Tensor& column, int64_t h, int64_t w) {
    const auto inside = [](const Tensor& at, int64_t size) { return logical_and(ge(at, 0), lt(at, size)); };
    valid = unsqueeze(logical_and(inside(row, h), inside(column, w)), 1);
    index = clamp(to(where(valid, unsqueeze(add(mul(row, w), column), 1), 0), kInt64), 0, h * w - 1);
  }
  Tensor index_of(const Tensor& x) const { return contiguous(expand(index, {x.size(0), x.size(1), index.size(2)})); }
  /// Reads x (B, C, H W); pixels outside are zeros.
  Tensor read(const Tensor& x) const { return where(valid, gather(x, 2, index_of(x)), 0); }
  /// Adds values (B, C, n) to sum (B, C, H W).
  Tensor add_to(const Tensor& sum, const Tensor& values) const {
    return scatter_add(sum, 2, index_of(sum), where(valid, values, 0));
  }
};

/// The four pixels around positions (B, n), and how far these lie from the first one, (B, 1, n).
struct Corners {
  std::vector<Pixels> pixels;
  Tensor down, right;

  Corners(const Tensor& at_y, const Tensor& at_x, int64_t h, int64_t w) {
    const Tensor top = floor(at_y.detach()), left = floor(at_x.detach());
    down = unsqueeze(sub(at_y, top), 1);
    right = unsqueeze(sub(at_x, left), 1);
    for (const int k : {0, 1, 2, 3}) pixels.emplace_back(add(top, k / 2), add(left, k % 2), h, w);
  }
};

/// Interpolates between two values.
Tensor mixed(const Tensor& a, const Tensor& b, const Tensor& weight_of_b) {
  return add(mul(a, rsub(weight_of_b, 1)), mul(b, weight_of_b));
}

/// The gradients of x (B, C, H W), at_y and at_x, composed of public operations.
Grads composed_bilinear_gradients(const Tensor& x, const Tensor& at_y, const Tensor& at_x, const Tensor& g) {
  const Corners corners(at_y, at_x, x.size(2), x.size(3));
  const Tensor flat = reshape(x, {x.size(0), x.size(1), x.size(2) * x.size(3)});
  const Tensor &down = corners.down, &right = corners.right;
  std::vector<Tensor> values;
  for (const Pixels& p : corners.pixels) values.push_back(p.read(flat));
  Tensor dx = zeros(flat.sizes(), like(g));
  for (std::size_t k = 0; k < 4; ++k) {
    const Tensor weight = mul(k / 2 == 1 ? down : rsub(down, 1), k % 2 == 1 ? right : rsub(right, 1));
    dx = corners.pixels[k].add_to(dx, mul(g, weight));
  }
  const Tensor down_slope = mixed(sub(values[2], values[0]), sub(values[3], values[1]), right);
  const Tensor right_slope = mixed(sub(values[1], values[0]), sub(values[3], values[2]), down);
  return {reshape(dx, x.sizes()), sum(mul(g, down_slope), 1), sum(mul(g, right_slope), 1)};
}

Grads bilinear_gradients(Context& k, const Tensor& g) {
  const Tensor x = k.saved(0), at_y = k.saved(1), at_x = k.saved(2);
  if (grad_enabled() || !kernels::bilinear_backward.has(g.device().type))
    return composed_bilinear_gradients(x, at_y, at_x, g);
  const Tensor dx = empty(x.sizes(), like(x));
  const Tensor drow = empty(at_y.sizes(), like(x)), dcolumn = empty(at_y.sizes(), like(x));
  launch(kernels::bilinear_backward, x.device(),
         {dx.tensor_view(), drow.tensor_view(), dcolumn.tensor_view(), dense(g).tensor_view(), dense(x).tensor_view(),
          dense(at_y).tensor_view(), dense(at_x).tensor_view()});
  return {dx, drow, dcolumn};
}

/// Reads x (B, C, H, W) bilinearly at `at_y` and `at_x` (B, n) of its type.
Tensor bilinear_sample(const Tensor& x, const Tensor& at_y, const Tensor& at_x) {
  if (needs_float32(kernels::bilinear, x))
    return to(bilinear_sample(to(x, kFloat32), to(at_y, kFloat32), to(at_x, kFloat32)), x.dtype());
  const Tensor y = empty({x.size(0), x.size(1), at_y.size(1)}, like(x));
  launch(kernels::bilinear, x.device(),
         {y.tensor_view(), dense(x).tensor_view(), dense(at_y).tensor_view(), dense(at_x).tensor_view()});
  if (Context* c = record("bilinear", y, {x, at_y, at_x}, bilinear_gradients)) c->save(x, at_y, at_x);
  return y;
}

}  // namespace

Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& o) {
  LEVIN_TRACE_CALL(grid_sample(x, grid, o), "grid_sample", {x, grid},
                   {{"mode", o.mode}, {"padding_mode", o.padding_mode}, {"align_corners", o.align_corners}});
  require_images("grid_sample", x);
  check_same_dtype("grid_sample", {{"x", x}, {"grid", grid}});
  if (grid.dim() != 4 || grid.size(0) != x.size(0) || grid.size(3) != 2)
    fail<ShapeError>("[grid_sample] grid is {}, expected is ({}, H, W, 2).", grid.sizes(), x.size(0));
  const int64_t h = x.size(2), w = x.size(3), points = grid.size(1) * grid.size(2);
  const Tensor at_x = pixels(reshape(select(grid, 3, 0), {x.size(0), points}), w, o);
  const Tensor at_y = pixels(reshape(select(grid, 3, 1), {x.size(0), points}), h, o);
  const Tensor y =
      o.mode == SampleMode::bilinear
          ? bilinear_sample(x, at_y, at_x)
          : Pixels(round(at_y.detach()), round(at_x.detach()), h, w).read(reshape(x, {x.size(0), x.size(1), h * w}));
  return reshape(y, {x.size(0), x.size(1), grid.size(1), grid.size(2)});
}

Tensor affine_grid(const Tensor& theta, const Shape& sizes, bool align_corners) {
  if (theta.dim() != 3 || theta.size(1) != 2 || theta.size(2) != 3 || sizes.size() != 4 || theta.size(0) != sizes[0])
    fail<ShapeError>("[affine_grid] theta is {} and sizes {}, expected are (B, 2, 3) and (B, C, H, W).", theta.sizes(),
                     sizes);
  const auto line = [&](int64_t n) {
    const double end = align_corners ? 1.0 : static_cast<double>(n - 1) / static_cast<double>(n);
    return n == 1 ? zeros({1}, like(theta)) : linspace(-end, end, n, like(theta));
  };
  const int64_t h = sizes[2], w = sizes[3];
  const std::vector<Tensor> at = meshgrid({line(h), line(w)});
  const Tensor points = reshape(stack({at[1], at[0], ones({h, w}, like(theta))}, 2), {h * w, 3});
  return reshape(matmul(points, transpose(theta, 1, 2)), {sizes[0], h, w, 2});
}

// Windows

namespace {

struct Windows {
  int64_t h, w, oh, ow;  ///< the padded image, and windows along each axis
};

Windows windows_of(const char* op, int64_t height, int64_t width, Tuple<2> kernel, const UnfoldOptions& o) {
  const auto count = [&](std::size_t axis, int64_t size) {
    const int64_t room = size + 2 * o.padding[axis] - o.dilation[axis] * (kernel[axis] - 1) - 1;
    if (room < 0)
      fail<ShapeError>("[{}] a kernel of {} with dilation {} does not fit into {} with padding {}.", op, kernel[axis],
                       o.dilation[axis], size, o.padding[axis]);
    return room / o.stride[axis] + 1;
  };
  return {height + 2 * o.padding[0], width + 2 * o.padding[1], count(0, height), count(1, width)};
}

/// Positions of the windows' elements along an axis, (windows * kernel).
Tensor window_positions(int64_t windows, int64_t kernel, int64_t stride, int64_t dilation, Device device) {
  return ravel(add(unsqueeze(mul(arange(windows), stride), 1), mul(arange(kernel), dilation))).to(device);
}

}  // namespace

Tensor unfold(const Tensor& x, Tuple<2> kernel, const UnfoldOptions& o) {
  require_images("unfold", x);
  const Windows g = windows_of("unfold", x.size(2), x.size(3), kernel, o);
  Tensor y = pad(x, {o.padding[1], o.padding[1], o.padding[0], o.padding[0]});
  y = index_select(y, 2, window_positions(g.oh, kernel[0], o.stride[0], o.dilation[0], x.device()));
  y = index_select(y, 3, window_positions(g.ow, kernel[1], o.stride[1], o.dilation[1], x.device()));
  y = reshape(y, {x.size(0), x.size(1), g.oh, kernel[0], g.ow, kernel[1]});
  return reshape(permute(y, {0, 1, 3, 5, 2, 4}), {x.size(0), x.size(1) * kernel[0] * kernel[1], g.oh * g.ow});
}

Tensor fold(const Tensor& x, Tuple<2> output_size, Tuple<2> kernel, const UnfoldOptions& o) {
  const Windows g = windows_of("fold", output_size[0], output_size[1], kernel, o);
  const int64_t area = kernel[0] * kernel[1];
  if (x.dim() != 3 || x.size(1) % area != 0 || x.size(2) != g.oh * g.ow)
    fail<ShapeError>("[fold] x is {}, expected is (B, C * {}, {}).", x.sizes(), area, g.oh * g.ow);
  const int64_t batch = x.size(0), channels = x.size(1) / area;
  Tensor y = reshape(x, {batch, channels, kernel[0], kernel[1], g.oh, g.ow});
  y = reshape(permute(y, {0, 1, 4, 2, 5, 3}), {batch, channels, g.oh * kernel[0], g.ow * kernel[1]});
  y = index_add(zeros({batch, channels, y.size(2), g.w}, like(x)), 3,
                window_positions(g.ow, kernel[1], o.stride[1], o.dilation[1], x.device()), y);
  y = index_add(zeros({batch, channels, g.h, g.w}, like(x)), 2,
                window_positions(g.oh, kernel[0], o.stride[0], o.dilation[0], x.device()), y);
  return narrow(narrow(y, 2, o.padding[0], output_size[0]), 3, o.padding[1], output_size[1]);
}

Tensor roi_align(const Tensor& x, const Tensor& boxes, Tuple<2> output_size, const RoiAlignOptions& o) {
  require_images("roi_align", x);
  if (boxes.dim() != 2 || boxes.size(1) != 5)
    fail<ShapeError>("[roi_align] boxes is {}, expected is (N, 5).", boxes.sizes());
  if (o.sampling_ratio < 1) fail<ValueError>("[roi_align] sampling_ratio is {}. Give 1 or more.", o.sampling_ratio);
  const int64_t n = boxes.size(0), s = o.sampling_ratio;
  const Tensor images = index_select(x, 0, to(select(boxes.detach(), 1, 0), kInt64));  // (N, C, H, W)
  const Tensor scaled = sub(mul(narrow(boxes.detach(), 1, 1, 4), o.spatial_scale), o.aligned ? 0.5 : 0.0);
  const auto samples = [&](int64_t axis, int64_t cells) {
    const Tensor start = narrow(scaled, 1, axis, 1);
    Tensor length = sub(narrow(scaled, 1, axis + 2, 1), start);
    if (!o.aligned) length = clamp(length, 1.0);
    const Tensor steps = mul(add(arange(cells * s, like(x)), 0.5), 1.0 / static_cast<double>(cells * s));
    return add(start, mul(length, steps));  // (N, cells * s)
  };
  const int64_t rows = output_size[0] * s, columns = output_size[1] * s;
  const auto whole = [&](const Tensor& at) { return reshape(expand(at, {n, rows, columns}), {n, rows * columns}); };
  const Tensor at_y = whole(unsqueeze(samples(1, output_size[0]), 2));
  const Tensor at_x = whole(unsqueeze(samples(0, output_size[1]), 1));
  // A sample up to a pixel outside reads the border; farther ones are zero.
  const auto near = [](const Tensor& at, int64_t size) {
    return logical_and(ge(at, -1.0), le(at, static_cast<double>(size)));
  };
  const auto kept = [](const Tensor& at, int64_t size) { return clamp(at, 0.0, static_cast<double>(size - 1)); };
  const Tensor valid = logical_and(near(at_y, x.size(2)), near(at_x, x.size(3)));
  const Tensor y =
      mul(bilinear_sample(images, to(kept(at_y, x.size(2)), x.dtype()), to(kept(at_x, x.size(3)), x.dtype())),
          to(unsqueeze(valid, 1), x.dtype()));
  return mean(reshape(y, {n, x.size(1), output_size[0], s, output_size[1], s}), Axes{3, 5});
}

}  // namespace levin
