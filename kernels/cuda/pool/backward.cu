// Gradients of pooling: a thread owns elements of x and visits the windows over them in order, so every sum has a fixed
// order.

#include "kernels/cuda/pool/windows.cuh"

namespace levin::kernels::cuda {

/// dx (planes, h, w); dy and indices (planes, oh, ow).
template <class T, class I, class N>
__global__ void max_gradient(T* dx, const T* dy, const I* indices, PoolAxes<N> axes, N count) {
  using C = ComputeType<T>;
  const PoolAxis<N>&rows = axes.rows, &columns = axes.columns;
  for (N t = pool_thread<N>(); t < count; t += pool_threads<N>()) {
    const PoolPlace<N> at(t, rows.size, columns.size);
    const PoolRange<N> down = rows.outputs_over(at.row), across = columns.outputs_over(at.column);
    C sum = 0;
    for (N i = down.begin; i < down.end; ++i) {
      const N p = rows.step_at(i, at.row);
      if (p < 0) continue;
      for (N j = across.begin; j < across.end; ++j) {
        const N q = columns.step_at(j, at.column);
        const N out = (at.plane * rows.outputs.value + i) * columns.outputs.value + j;
        if (q >= 0 && static_cast<N>(indices[out]) == p * columns.kernel + q) sum += convert<C>(dy[out]);
      }
    }
    dx[t] = convert<T>(sum);
  }
}

/// The outputs whose windows lie over the row of an element of x, if windows do not overlap.
struct RowOfWindows {
  __device__ RowOfWindows(const PoolAxes<std::int32_t>& axes, std::int32_t element) {
    const PoolAxis<std::int32_t>& rows = axes.rows;
    const PoolPlace<std::int32_t> at(element, rows.size, axes.columns.size);
    const std::int32_t i = rows.stride.quotient(at.row + rows.padding), p = at.row - rows.start(i);
    column = at.column;
    outputs = (at.plane * rows.outputs.value + i) * axes.columns.outputs.value;
    step = p * axes.columns.kernel;
    covered = i < rows.outputs.value && p < rows.kernel;
  }
  std::int32_t column;   ///< of the element
  std::int32_t outputs;  ///< offset of the first
  int step;              ///< step of their windows at which the row begins
  bool covered;          ///< false if the row lies between windows
};

/// For windows that do not overlap: an element takes the gradient of the only window over it, or none. A thread writes
/// packs of 16 bytes, and loads the gradients and indices of all windows over a pack before it compares any. `whole`:
/// rows of x consist of packs. With kPairs, columns 2n and 2n + 1 form window n, and with `whole` what a pack needs is
/// aligned.
template <class T, class I, bool kPairs>
__global__ void max_gradient_apart(T* dx, const T* dy, const I* indices, PoolAxes<std::int32_t> axes,
                                   std::int32_t count, bool whole) {
  constexpr int kWidth = 16 / static_cast<int>(sizeof(T)), kShare = kPairs ? 2 : 1, kGroups = kWidth / kShare;
  const PoolAxis<std::int32_t>& columns = axes.columns;
  const std::int32_t stride = pool_threads<std::int32_t>() * kWidth;
  for (std::int32_t first = pool_thread<std::int32_t>() * kWidth; first < count; first += stride) {
    RowOfWindows row(axes, first);
    Pack<T, kGroups> gradients{};
    int winners[kGroups], steps[kGroups];  // the step of the window's maximum, and of the group's first element
    if (kPairs && whole) {
      Pack<I, kGroups> loaded{};
      const std::int32_t from = row.outputs + row.column / 2;
      if (row.covered) {
        loaded = pack_at<kGroups>(indices + from);
        gradients = pack_at<kGroups>(dy + from);
      }
      LEVIN_PRAGMA_UNROLL
      for (int g = 0; g < kGroups; ++g) winners[g] = static_cast<int>(loaded[g]), steps[g] = row.step;
    } else {
      LEVIN_PRAGMA_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        if (g > 0 && whole) row.column += kShare;
        if (g > 0 && !whole) row = RowOfWindows(axes, first + g * kShare);
        const std::int32_t j = columns.stride.quotient(row.column + columns.padding);
        const std::int32_t q = row.column - columns.start(j), from = row.outputs + j;
        const bool covered = row.covered && j < columns.outputs.value && q < columns.kernel;
        winners[g] = -1, steps[g] = row.step + q;
        if (covered && first + g * kShare < count) {
          winners[g] = static_cast<int>(indices[from]);
          gradients[g] = dy[from];
        }
      }
    }
    Pack<T, kWidth> pack;
    LEVIN_PRAGMA_UNROLL
    for (int e = 0; e < kWidth; ++e) {
      const int g = e / kShare;
      pack[e] = winners[g] == steps[g] + e % kShare ? gradients[g] : T{};
    }
    if (first + kWidth <= count) {
      pack_at<kWidth>(dx + first) = pack;
    } else {
      LEVIN_PRAGMA_UNROLL
      for (int e = 0; e < kWidth; ++e) {
        if (e < count - first) dx[first + e] = pack[e];
      }
    }
  }
}

/// True if no element lies in two windows.
inline bool windows_apart(const PoolGeometry& g) {
  const bool dense = (g.dilation_h == 1 || g.kernel_h == 1) && (g.dilation_w == 1 || g.kernel_w == 1);
  return dense && g.stride_h >= g.kernel_h && g.stride_w >= g.kernel_w;
}

template <class T, class I>
void launch_apart(const MaxPool2dBackwardArgs& a, std::int64_t count, Stream& stream) {
  constexpr std::int64_t kWidth = 16 / static_cast<std::int64_t>(sizeof(T));
  const PoolGeometry& g = a.geometry;
  launch(windows_in_pairs(g) ? max_gradient_apart<T, I, true> : max_gradient_apart<T, I, false>,
         {.grid = blocks_for(ceil_div(count, kWidth)), .block = 256, .stream = stream}, static_cast<T*>(a.dx.pointer),
         static_cast<const T*>(a.dy.pointer), static_cast<const I*>(a.indices.pointer), PoolAxes<std::int32_t>(g),
         static_cast<std::int32_t>(count), aligned_16(a.dy.pointer, a.indices.pointer) && g.w % kWidth == 0);
}

void max_pool2d_backward(const MaxPool2dBackwardArgs& a, Stream& stream) {
  const PoolGeometry& g = a.geometry;
  const std::int64_t count = g.planes * g.h * g.w;
  const bool apart = windows_apart(g) && aligned_16(a.dx.pointer);
  dispatch_pool(a.dx.dtype, g, "max_pool2d_backward", [&]<class T, class I, class N>() {
    if (count == 0) return;
    if constexpr (sizeof(N) == 4) {
      if (apart) return launch_apart<T, I>(a, count, stream);
    }
    launch(max_gradient<T, I, N>, {.grid = blocks_for(count), .block = 256, .stream = stream},
           static_cast<T*>(a.dx.pointer), static_cast<const T*>(a.dy.pointer), static_cast<const I*>(a.indices.pointer),
           PoolAxes<N>(g), static_cast<N>(count));
  });
}

/// y = the elements of x at the indices.
template <class T, class I, class N>
__global__ void pick_elements(T* y, const T* x, const I* indices, PoolAxes<N> axes, N count) {
  const PoolAxis<N>&rows = axes.rows, &columns = axes.columns;
  for (N t = pool_thread<N>(); t < count; t += pool_threads<N>()) {
    const PoolPlace<N> at(t, rows.outputs, columns.outputs);
    const Division step = divide(static_cast<std::int64_t>(indices[t]), columns.kernel);
    const N row = rows.start(at.row) + static_cast<N>(step.quotient) * rows.dilation.value;
    const N column = columns.start(at.column) + static_cast<N>(step.remainder) * columns.dilation.value;
    y[t] = x[(at.plane * rows.size.value + row) * columns.size.value + column];
  }
}

void max_pool2d_pick(const MaxPool2dArgs& a, Stream& stream) {
  const std::int64_t count = a.geometry.planes * a.geometry.oh * a.geometry.ow;
  dispatch_pool(a.x.dtype, a.geometry, "max_pool2d_pick", [&]<class T, class I, class N>() {
    if (count == 0) return;
    launch(pick_elements<T, I, N>, {.grid = blocks_for(count), .block = 256, .stream = stream},
           static_cast<T*>(a.y.pointer), static_cast<const T*>(a.x.pointer), static_cast<const I*>(a.indices.pointer),
           PoolAxes<N>(a.geometry), static_cast<N>(count));
  });
}

/// dy (planes, oh, ow); each output gives every element of its window the same share.
template <class T, class N>
__global__ void average_gradient(T* dx, const T* dy, PoolAxes<N> axes, N count, bool count_padding) {
  using C = ComputeType<T>;
  const PoolAxis<N>&rows = axes.rows, &columns = axes.columns;
  for (N t = pool_thread<N>(); t < count; t += pool_threads<N>()) {
    const PoolPlace<N> at(t, rows.size, columns.size);
    const PoolRange<N> down = rows.outputs_over(at.row), across = columns.outputs_over(at.column);
    C sum = 0;
    for (N i = down.begin; i < down.end; ++i) {
      const std::int64_t height = rows.average_count(i, count_padding);
      const T* line = dy + (at.plane * rows.outputs.value + i) * columns.outputs.value;
      for (N j = across.begin; j < across.end; ++j)
        sum += convert<C>(line[j]) / static_cast<C>(height * columns.average_count(j, count_padding));
    }
    dx[t] = convert<T>(sum);
  }
}

void avg_pool2d_backward(const AvgPool2dArgs& a, Stream& stream) {
  const std::int64_t count = a.geometry.planes * a.geometry.h * a.geometry.w;
  dispatch_averages(a.x.dtype, a.geometry, "avg_pool2d_backward", [&]<class T, class N>() {
    if (count == 0) return;
    launch(average_gradient<T, N>, {.grid = blocks_for(count), .block = 256, .stream = stream},
           static_cast<T*>(a.x.pointer), static_cast<const T*>(a.y.pointer), PoolAxes<N>(a.geometry),
           static_cast<N>(count), a.count_include_pad);
  });
}

}  // namespace levin::kernels::cuda
