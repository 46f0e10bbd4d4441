// Pools composed of pools over images, matrix products and windows; maxima with their positions, and the way back.

#include "../../errors.h"
#include "../values.h"
#include "trace_attributes.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/pool.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>

#include <algorithm>
#include <vector>

namespace levin {

using namespace ops;

namespace {

/// Checks that x has `spatial` axes after (B, C) or (C).
void require_spatial(const char* op, const Tensor& x, int spatial) {
  check_floating(op, x);
  if (x.dim() != spatial + 1 && x.dim() != spatial + 2)
    fail<ShapeError>("[{}] x is {}, expected are {} spatial axes after (B, C) or (C).", op, x.sizes(), spatial);
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
                            {.stride = Tuple<2>(1, o.stride.value_or(kernel)[0]),
                             .padding = {0, o.padding[0]},
                             .dilation = {1, o.dilation[0]},
                             .ceil_mode = o.ceil_mode}),
                 -2);
}

Tensor avg_pool1d(const Tensor& x, Tuple<1> kernel, const AvgPool1dOptions& o) {
  LEVIN_TRACE_CALL(avg_pool1d(x, kernel, o), "avg_pool1d", {x}, LEVIN_AVERAGE_ATTRIBUTES(kernel, o));
  require_spatial("avg_pool1d", x, 1);
  return squeeze(avg_pool2d(unsqueeze(x, -2), {1, kernel[0]},
                            {.stride = Tuple<2>(1, o.stride.value_or(kernel)[0]),
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

/// Computes (sum of x^p over the window)^(1 / p) by `average`, without NaN for a sum of 0.
template <std::size_t N, class AverageOptions, class Options>
Tensor lp_pool(Tensor (*average)(const Tensor&, Tuple<N>, const AverageOptions&), const Tensor& x, double p,
               Tuple<N> kernel, const Options& o) {
  const Tensor means = average(pow(x, p), kernel, {.stride = o.stride, .ceil_mode = o.ceil_mode});
  double area = 1;
  for (std::size_t i = 0; i < N; ++i) area *= static_cast<double>(kernel[i]);
  return pow(mul(mul(sign(means), relu(abs(means))), area), 1.0 / p);
}

}  // namespace

Tensor lp_pool1d(const Tensor& x, double p, Tuple<1> kernel, const LpPool1dOptions& o) {
  return lp_pool(avg_pool1d, x, p, kernel, o);
}
Tensor lp_pool2d(const Tensor& x, double p, Tuple<2> kernel, const LpPool2dOptions& o) {
  require_spatial("lp_pool2d", x, 2);
  return lp_pool(avg_pool2d, x, p, kernel, o);
}
Tensor lp_pool3d(const Tensor& x, double p, Tuple<3> kernel, const LpPool3dOptions& o) {
  return lp_pool(avg_pool3d, x, p, kernel, o);
}

// Adaptive pools

namespace {

/// The windows of an adaptive pool along an axis, which cover all of it; neighbours may share elements.
struct AdaptiveWindows {
  int64_t size, count;

  AdaptiveWindows(const char* op, int64_t axis_size, int64_t outputs) : size(axis_size), count(outputs) {
    if (count < 1 || size < 1)
      fail<ValueError>("[{}] an axis of size {} cannot be pooled to {}. Give 1 or more.", op, size, count);
  }
  int64_t start(int64_t o) const { return o * size / count; }
  int64_t end(int64_t o) const { return ((o + 1) * size + count - 1) / count; }
  int64_t longest() const {
    int64_t length = 0;
    for (int64_t o = 0; o < count; ++o) length = std::max(length, end(o) - start(o));
    return length;
  }
};

/// Pools along one axis by a product with a matrix (outputs, size) of 1 / length in each window.
Tensor mean_along(const char* op, const Tensor& x, int axis, int64_t outputs) {
  const int64_t size = x.size(axis);
  const AdaptiveWindows w(op, size, outputs);
  if (outputs == size) return x;
  if (outputs == 1) return mean(x, axis, true);
  std::vector<double> weights(static_cast<std::size_t>(outputs * size), 0.0);
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t i = w.start(o); i < w.end(o); ++i)
      weights[static_cast<std::size_t>(o * size + i)] = 1.0 / static_cast<double>(w.end(o) - w.start(o));
  const Tensor matrix = from_data(weights, {outputs, size}).to(x.device(), x.dtype());
  return movedim(linear(movedim(x, axis, -1), matrix), -1, axis);
}

/// Pools along one axis: windows of the longest length, whose surplus elements repeat the last one.
Tensor max_along(const char* op, const Tensor& x, int axis, int64_t outputs) {
  const int64_t size = x.size(axis);
  const AdaptiveWindows w(op, size, outputs);
  if (outputs == size) return x;
  if (outputs == 1) return max(x, axis, true).values;
  const int64_t longest = w.longest();
  std::vector<int64_t> places;
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t i = 0; i < longest; ++i) places.push_back(std::min(w.start(o) + i, w.end(o) - 1));
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

// Maxima with their positions

namespace {

/// The positions along one axis that each window reads, in rows of equal length; -1 is padding.
struct AxisWindows {
  int64_t count = 0, length = 0;
  std::vector<int64_t> positions{};
};

AxisWindows axis_windows(int64_t size, int64_t count, int64_t kernel, int64_t stride, int64_t padding,
                         int64_t dilation) {
  AxisWindows w{count, kernel};
  for (int64_t o = 0; o < count; ++o)
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t at = o * stride - padding + k * dilation;
      w.positions.push_back(at >= 0 && at < size ? at : -1);
    }
  return w;
}

AxisWindows adaptive_windows(const char* op, int64_t size, int64_t count) {
  const AdaptiveWindows a(op, size, count);
  AxisWindows w{count, a.longest()};
  for (int64_t o = 0; o < count; ++o)
    for (int64_t k = 0; k < w.length; ++k) w.positions.push_back(a.start(o) + k < a.end(o) ? a.start(o) + k : -1);
  return w;
}

/// Selects the maximum of each window over the last axes, of which `windows` has one entry each.
ValuesIndices select_maxima(const Tensor& x, const std::vector<AxisWindows>& windows) {
  const int spatial = static_cast<int>(windows.size());
  Shape result = x.sizes();
  int64_t count = 1, length = 1, size = 1;
  for (int i = 0; i < spatial; ++i) {
    const AxisWindows& w = windows[static_cast<std::size_t>(i)];
    result[x.dim() - spatial + i] = w.count;
    count *= w.count, length *= w.length, size *= x.size(x.dim() - spatial + i);
  }
  // The place of each window's elements in the flattened axes, (count, length). Padding repeats the window's first
  // element, which changes neither the maximum nor the first place that has it.
  std::vector<int64_t> places(static_cast<std::size_t>(count * length));
  for (std::size_t p = 0; p < places.size(); ++p) {
    int64_t window = static_cast<int64_t>(p) / length, element = static_cast<int64_t>(p) % length, step = 1, place = 0;
    bool inside = true;
    for (int i = spatial - 1; i >= 0; --i) {
      const AxisWindows& w = windows[static_cast<std::size_t>(i)];
      const int64_t at = w.positions[static_cast<std::size_t>(window % w.count * w.length + element % w.length)];
      window /= w.count, element /= w.length;
      inside = inside && at >= 0;
      place += std::max<int64_t>(at, 0) * step;
      step *= x.size(x.dim() - spatial + i);
    }
    places[p] = inside ? place : -1;
  }
  for (auto row = places.begin(); row != places.end(); row += length) {
    const int64_t first = *std::find_if(row, row + length, [](int64_t at) { return at >= 0; });
    std::replace(row, row + length, int64_t{-1}, first);
  }
  const int64_t outer = x.numel() / std::max<int64_t>(1, size);
  const Tensor place = from_data(places, {count * length}).to(x.device());
  const Tensor flat = reshape(x, {outer, size});
  const Tensor values = reshape(index_select(flat.detach(), 1, place), {outer, count, length});
  const Tensor best = argmax(values, 2, true);
  const Tensor whole = expand(reshape(place, {1, count, length}), {outer, count, length});
  const Tensor index = squeeze(gather(contiguous(whole), 2, best), 2);
  return {reshape(gather(flat, 1, index), result), reshape(index, result)};
}

/// `pool` checks the arguments and gives the number of windows.
template <std::size_t N, class Options, class Pool>
ValuesIndices maxima(const Tensor& x, Tuple<N> kernel, const Options& o, const Pool& pool) {
  const Tensor y = pool(x.detach(), kernel, o);
  const Tuple<N> stride = o.stride.value_or(kernel);
  std::vector<AxisWindows> windows;
  for (std::size_t i = 0; i < N; ++i) {
    const int axis = x.dim() - static_cast<int>(N - i);
    windows.push_back(axis_windows(x.size(axis), y.size(axis), kernel[i], stride[i], o.padding[i], o.dilation[i]));
  }
  return select_maxima(x, windows);
}

template <std::size_t N>
ValuesIndices adaptive_maxima(const char* op, const Tensor& x, Tuple<N> output_size) {
  require_spatial(op, x, static_cast<int>(N));
  std::vector<AxisWindows> windows;
  for (std::size_t i = 0; i < N; ++i)
    windows.push_back(adaptive_windows(op, x.size(x.dim() - static_cast<int>(N - i)), output_size[i]));
  return select_maxima(x, windows);
}

template <std::size_t N>
Tensor unpooled(const char* op, const Tensor& x, const Tensor& indices, const std::array<int64_t, N>& sizes) {
  require_spatial(op, x, static_cast<int>(N));
  if (indices.sizes() != x.sizes())
    fail<ShapeError>("[{}] indices is {}, and x is {}.", op, indices.sizes(), x.sizes());
  Shape result = x.sizes();
  int64_t windows = 1, size = 1;
  for (std::size_t i = 0; i < N; ++i) {
    const int axis = x.dim() - static_cast<int>(N - i);
    windows *= x.size(axis), size *= sizes[i];
    result[axis] = sizes[i];
  }
  const int64_t outer = x.numel() / std::max<int64_t>(1, windows);
  const Tensor places = reshape(as_int64(op, {"indices", indices}), {outer, windows});
  return reshape(scatter(zeros({outer, size}, like(x)), 1, places, reshape(x, {outer, windows})), result);
}

}  // namespace

ValuesIndices max_pool1d_with_indices(const Tensor& x, Tuple<1> kernel, const MaxPool1dOptions& o) {
  return maxima(x, kernel, o, max_pool1d);
}
ValuesIndices max_pool2d_with_indices(const Tensor& x, Tuple<2> kernel, const MaxPool2dOptions& o) {
  return maxima(x, kernel, o, max_pool2d);
}
ValuesIndices max_pool3d_with_indices(const Tensor& x, Tuple<3> kernel, const MaxPool3dOptions& o) {
  return maxima(x, kernel, o, max_pool3d);
}

ValuesIndices adaptive_max_pool1d_with_indices(const Tensor& x, Tuple<1> n) {
  return adaptive_maxima("adaptive_max_pool1d", x, n);
}
ValuesIndices adaptive_max_pool2d_with_indices(const Tensor& x, Tuple<2> n) {
  return adaptive_maxima("adaptive_max_pool2d", x, n);
}
ValuesIndices adaptive_max_pool3d_with_indices(const Tensor& x, Tuple<3> n) {
  return adaptive_maxima("adaptive_max_pool3d", x, n);
}

Tensor max_unpool1d(const Tensor& x, const Tensor& indices, int64_t size) {
  return unpooled<1>("max_unpool1d", x, indices, {size});
}
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, std::array<int64_t, 2> sizes) {
  return unpooled("max_unpool2d", x, indices, sizes);
}
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, std::array<int64_t, 3> sizes) {
  return unpooled("max_unpool3d", x, indices, sizes);
}

}  // namespace levin
