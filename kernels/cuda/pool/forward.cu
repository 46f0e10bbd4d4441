// Max and average pooling: one thread per output. Neighbouring windows overlap in the cache.

#include "kernels/cuda/pool/windows.cuh"

#include <limits>

namespace levin::kernels::cuda {

/// x (planes, h, w); y and indices (planes, oh, ow); indices may be null.
template <class T, class I>
__global__ void max_windows(T* y, I* indices, const T* x, PoolAxes axes, std::int64_t count) {
  using C = ComputeType<T>;
  const PoolAxis &rows = axes.rows, &columns = axes.columns;
  for (std::int64_t t = global_thread(); t < count; t += grid_threads()) {
    const PoolPlace at(t, rows.outputs, columns.outputs);
    const PoolRange down = rows.inside(at.row), across = columns.inside(at.column);
    const T* corner = x + (at.plane * rows.size + rows.start(at.row)) * columns.size + columns.start(at.column);
    C best = -std::numeric_limits<C>::infinity();
    std::int64_t code = down.begin * columns.kernel + across.begin;
    for (std::int64_t p = down.begin; p < down.end; ++p) {
      for (std::int64_t q = across.begin; q < across.end; ++q) {
        const C v = convert<C>(corner[p * rows.dilation * columns.size + q * columns.dilation]);
        if (v > best || v != v) {
          best = v;
          code = p * columns.kernel + q;
        }
      }
    }
    y[t] = convert<T>(best);
    if (indices) indices[t] = static_cast<I>(code);
  }
}

void max_pool2d(const MaxPool2dArgs& a, Stream& stream) {
  const std::int64_t count = a.geometry.planes * a.geometry.oh * a.geometry.ow;
  dispatch_pool(a.x.dtype, a.geometry, "max_pool2d", [&]<class T, class I>() {
    if (count == 0) return;
    launch(max_windows<T, I>, {.grid = blocks_for(count), .block = 256, .stream = stream}, static_cast<T*>(a.y.pointer),
           static_cast<I*>(a.indices.pointer), static_cast<const T*>(a.x.pointer), PoolAxes(a.geometry), count);
  });
}

template <class T>
__global__ void average_windows(T* y, const T* x, PoolAxes axes, std::int64_t count, bool count_padding) {
  using C = ComputeType<T>;
  const PoolAxis &rows = axes.rows, &columns = axes.columns;
  for (std::int64_t t = global_thread(); t < count; t += grid_threads()) {
    const PoolPlace at(t, rows.outputs, columns.outputs);
    const PoolRange down = rows.inside(at.row), across = columns.inside(at.column);
    const T* corner = x + (at.plane * rows.size + rows.start(at.row)) * columns.size + columns.start(at.column);
    C sum = 0;
    for (std::int64_t p = down.begin; p < down.end; ++p)
      for (std::int64_t q = across.begin; q < across.end; ++q) sum += convert<C>(corner[p * columns.size + q]);
    const std::int64_t n = rows.average_count(at.row, count_padding) * columns.average_count(at.column, count_padding);
    y[t] = convert<T>(sum / static_cast<C>(n));
  }
}

void avg_pool2d(const AvgPool2dArgs& a, Stream& stream) {
  const std::int64_t count = a.geometry.planes * a.geometry.oh * a.geometry.ow;
  dispatch_floats(a.x.dtype, "avg_pool2d", [&]<class T>() {
    if (count == 0) return;
    launch(average_windows<T>, {.grid = blocks_for(count), .block = 256, .stream = stream},
           static_cast<T*>(a.y.pointer), static_cast<const T*>(a.x.pointer), PoolAxes(a.geometry), count,
           a.count_include_pad);
  });
}

}  // namespace levin::kernels::cuda
