// Maxima of windows with their positions, and the way back.

#include "../../errors.h"
#include "../values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/pool.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>

#include <algorithm>
#include <vector>

namespace levin {

using namespace ops;

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
  if (count < 1 || size < 1)
    fail<ValueError>("[{}] an axis of size {} cannot be pooled to {}. Give 1 or more.", op, size, count);
  const auto start = [&](int64_t o) { return o * size / count; };
  const auto end = [&](int64_t o) { return ((o + 1) * size + count - 1) / count; };
  AxisWindows w{count, 0};
  for (int64_t o = 0; o < count; ++o) w.length = std::max(w.length, end(o) - start(o));
  for (int64_t o = 0; o < count; ++o)
    for (int64_t k = 0; k < w.length; ++k) w.positions.push_back(start(o) + k < end(o) ? start(o) + k : -1);
  return w;
}

void require_pooled_axes(const char* op, const Tensor& x, int spatial) {
  check_floating(op, x);
  if (x.dim() != spatial + 1 && x.dim() != spatial + 2)
    fail<ShapeError>("[{}] x is {}, expected are {} spatial axes after (B, C) or (C).", op, x.sizes(), spatial);
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
  require_pooled_axes(op, x, static_cast<int>(N));
  std::vector<AxisWindows> windows;
  for (std::size_t i = 0; i < N; ++i)
    windows.push_back(adaptive_windows(op, x.size(x.dim() - static_cast<int>(N - i)), output_size[i]));
  return select_maxima(x, windows);
}

template <std::size_t N>
Tensor unpooled(const char* op, const Tensor& x, const Tensor& indices, const std::array<int64_t, N>& sizes) {
  require_pooled_axes(op, x, static_cast<int>(N));
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
