// Pools composed of pools over images, matrix products and windows.

#include "../../errors.h"
#include "../values.h"
#include "trace_attributes.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/pool.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/view.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace levin {

using namespace ops;

namespace {

/// Checks that x has `spatial` axes after (B, C) or (C).
void require_spatial(const char* op, const Tensor& x, int spatial) {
  check_floating(op, x);
  if (x.dim() != spatial + 1 && x.dim() != spatial + 2)
    fail<ShapeError>("[{}] x is {}, expected are {} spatial axes after (B, C) or (C).", op, x.sizes(), spatial);
}

std::optional<Tuple<2>> in_line(const std::optional<Tuple<1>>& stride) {
  return stride ? std::optional<Tuple<2>>(Tuple<2>(int64_t{1}, (*stride)[0])) : std::nullopt;
}

/// Pools x (..., D, H, W) over H and W, then over D, both by pools over images: `pool(x, kernel, stride, padding,
/// dilation)`. Maxima and means over windows of three axes are those of means over two and one.
template <std::size_t N, class F>
Tensor pool_volume(const char* op, const Tensor& x, Tuple<N> kernel, Tuple<N> stride, Tuple<N> padding,
                   Tuple<N> dilation, const F& pool) {
  require_spatial(op, x, 3);
  const auto last = [](const Tuple<N>& t) { return Tuple<2>(t[1], t[2]); };
  const int64_t depth = x.size(-3), outer = x.numel() / std::max<int64_t>(1, depth * x.size(-2) * x.size(-1));
  const Tensor images = reshape(x, {outer * depth, 1, x.size(-2), x.size(-1)});
  const Tensor flat = pool(images, last(kernel), last(stride), last(padding), last(dilation));
  const int64_t h = flat.size(2), w = flat.size(3);
  const Tensor lines = reshape(flat, {outer, 1, depth, h * w});
  const Tensor deep =
      pool(lines, Tuple<2>(kernel[0], 1), Tuple<2>(stride[0], 1), Tuple<2>(padding[0], 0), Tuple<2>(dilation[0], 1));
  Shape sizes = x.sizes();
  sizes[x.dim() - 3] = deep.size(2);
  sizes[x.dim() - 2] = h;
  sizes[x.dim() - 1] = w;
  return reshape(deep, sizes);
}

}  // namespace

Tensor max_pool1d(const Tensor& x, Tuple<1> kernel, const MaxPool1dOptions& o) {
  LEVIN_TRACE_CALL(max_pool1d(x, kernel, o), "max_pool1d", {x}, LEVIN_MAXIMUM_ATTRIBUTES(kernel, o));
  require_spatial("max_pool1d", x, 1);
  return squeeze(max_pool2d(unsqueeze(x, -2), {1, kernel[0]},
                            {.stride = in_line(o.stride ? o.stride : std::optional(kernel)),
                             .padding = {0, o.padding[0]},
                             .dilation = {1, o.dilation[0]},
                             .ceil_mode = o.ceil_mode}),
                 -2);
}

Tensor avg_pool1d(const Tensor& x, Tuple<1> kernel, const AvgPool1dOptions& o) {
  LEVIN_TRACE_CALL(avg_pool1d(x, kernel, o), "avg_pool1d", {x}, LEVIN_AVERAGE_ATTRIBUTES(kernel, o));
  require_spatial("avg_pool1d", x, 1);
  return squeeze(avg_pool2d(unsqueeze(x, -2), {1, kernel[0]},
                            {.stride = in_line(o.stride ? o.stride : std::optional(kernel)),
                             .padding = {0, o.padding[0]},
                             .ceil_mode = o.ceil_mode,
                             .count_include_pad = o.count_include_pad}),
                 -2);
}

Tensor max_pool3d(const Tensor& x, Tuple<3> kernel, const MaxPool3dOptions& o) {
  LEVIN_TRACE_CALL(max_pool3d(x, kernel, o), "max_pool3d", {x}, LEVIN_MAXIMUM_ATTRIBUTES(kernel, o));
  return pool_volume(
      "max_pool3d", x, kernel, o.stride.value_or(kernel), o.padding, o.dilation,
      [&](const Tensor& t, Tuple<2> k, Tuple<2> stride, Tuple<2> padding, Tuple<2> dilation) {
        return max_pool2d(t, k, {.stride = stride, .padding = padding, .dilation = dilation, .ceil_mode = o.ceil_mode});
      });
}

Tensor avg_pool3d(const Tensor& x, Tuple<3> kernel, const AvgPool3dOptions& o) {
  LEVIN_TRACE_CALL(avg_pool3d(x, kernel, o), "avg_pool3d", {x}, LEVIN_AVERAGE_ATTRIBUTES(kernel, o));
  return pool_volume(
      "avg_pool3d", x, kernel, o.stride.value_or(kernel), o.padding, Tuple<3>(1),
      [&](const Tensor& t, Tuple<2> k, Tuple<2> stride, Tuple<2> padding, Tuple<2>) {
        return avg_pool2d(
            t, k,
            {.stride = stride, .padding = padding, .ceil_mode = o.ceil_mode, .count_include_pad = o.count_include_pad});
      });
}

namespace {

/// (mean of x^p times the window's area)^(1 / p), without NaN for a sum of 0.
Tensor root_of(const Tensor& means, double area, double p) {
  return pow(mul(mul(sign(means), relu(abs(means))), area), 1.0 / p);
}

}  // namespace

Tensor lp_pool1d(const Tensor& x, double p, Tuple<1> kernel, const LpPool1dOptions& o) {
  const Tensor means = avg_pool1d(pow(x, p), kernel, {.stride = o.stride, .ceil_mode = o.ceil_mode});
  return root_of(means, static_cast<double>(kernel[0]), p);
}

Tensor lp_pool2d(const Tensor& x, double p, Tuple<2> kernel, const LpPool2dOptions& o) {
  require_spatial("lp_pool2d", x, 2);
  const Tensor means = avg_pool2d(pow(x, p), kernel, {.stride = o.stride, .ceil_mode = o.ceil_mode});
  return root_of(means, static_cast<double>(kernel[0] * kernel[1]), p);
}

Tensor lp_pool3d(const Tensor& x, double p, Tuple<3> kernel, const LpPool3dOptions& o) {
  const Tensor means = avg_pool3d(pow(x, p), kernel, {.stride = o.stride, .ceil_mode = o.ceil_mode});
  return root_of(means, static_cast<double>(kernel[0] * kernel[1] * kernel[2]), p);
}

// Adaptive pools

namespace {

int64_t window_start(int64_t o, int64_t outputs, int64_t size) { return o * size / outputs; }
int64_t window_end(int64_t o, int64_t outputs, int64_t size) { return ((o + 1) * size + outputs - 1) / outputs; }

void check_output(const char* op, int64_t outputs, int64_t size) {
  if (outputs < 1 || size < 1)
    fail<ValueError>("[{}] an axis of size {} cannot be pooled to {}. Give 1 or more.", op, size, outputs);
}

/// Pools along one axis by a product with a matrix (outputs, size) of 1 / length in each window.
Tensor mean_along(const char* op, const Tensor& x, int axis, int64_t outputs) {
  const int64_t size = x.size(axis);
  check_output(op, outputs, size);
  if (outputs == size) return x;
  if (outputs == 1) return mean(x, axis, true);
  std::vector<double> weights(static_cast<std::size_t>(outputs * size), 0.0);
  for (int64_t o = 0; o < outputs; ++o) {
    const int64_t start = window_start(o, outputs, size), end = window_end(o, outputs, size);
    for (int64_t i = start; i < end; ++i)
      weights[static_cast<std::size_t>(o * size + i)] = 1.0 / static_cast<double>(end - start);
  }
  const Tensor matrix = from_data(weights, {outputs, size}).to(x.device(), x.dtype());
  return movedim(linear(movedim(x, axis, -1), matrix), -1, axis);
}

/// Pools along one axis: windows of the longest length, whose surplus elements repeat the last one.
Tensor max_along(const char* op, const Tensor& x, int axis, int64_t outputs) {
  const int64_t size = x.size(axis);
  check_output(op, outputs, size);
  if (outputs == size) return x;
  if (outputs == 1) return max(x, axis, true).values;
  int64_t longest = 0;
  for (int64_t o = 0; o < outputs; ++o)
    longest = std::max(longest, window_end(o, outputs, size) - window_start(o, outputs, size));
  std::vector<int64_t> places;
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t i = 0; i < longest; ++i)
      places.push_back(std::min(window_start(o, outputs, size) + i, window_end(o, outputs, size) - 1));
  const Tensor windows = index_select(x, axis, from_data(places, {static_cast<int64_t>(places.size())}).to(x.device()));
  return max(unflatten(windows, axis, {outputs, longest}), axis + 1).values;
}

template <std::size_t N>
Tensor adaptive(const char* op, const Tensor& x, Tuple<N> sizes,
                Tensor (*along)(const char*, const Tensor&, int, int64_t)) {
  require_spatial(op, x, static_cast<int>(N));
  Tensor y = x;
  for (std::size_t i = 0; i < N; ++i) y = along(op, y, x.dim() - static_cast<int>(N - i), sizes[i]);
  return y;
}

template <std::size_t N>
Tensor adaptive_mean(const char* op, const Tensor& x, Tuple<N> sizes) {
  if (sizes != Tuple<N>(1) || x.numel() == 0) return adaptive(op, x, sizes, mean_along);
  require_spatial(op, x, static_cast<int>(N));
  Axes all;
  for (int i = x.dim() - static_cast<int>(N); i < x.dim(); ++i) all.push_back(i);
  return mean(x, all, true);
}

}  // namespace

Tensor adaptive_avg_pool1d(const Tensor& x, Tuple<1> n) { return adaptive_mean("adaptive_avg_pool1d", x, n); }
Tensor adaptive_avg_pool2d(const Tensor& x, Tuple<2> n) { return adaptive_mean("adaptive_avg_pool2d", x, n); }
Tensor adaptive_avg_pool3d(const Tensor& x, Tuple<3> n) { return adaptive_mean("adaptive_avg_pool3d", x, n); }
Tensor adaptive_max_pool1d(const Tensor& x, Tuple<1> n) { return adaptive("adaptive_max_pool1d", x, n, max_along); }
Tensor adaptive_max_pool2d(const Tensor& x, Tuple<2> n) { return adaptive("adaptive_max_pool2d", x, n, max_along); }
Tensor adaptive_max_pool3d(const Tensor& x, Tuple<3> n) { return adaptive("adaptive_max_pool3d", x, n, max_along); }

}  // namespace levin
