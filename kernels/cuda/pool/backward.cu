// Gradients of pooling: one thread per element of x visits the windows over it in order, so every sum has a fixed
// order.

#include "kernels/cuda/pool/windows.cuh"

namespace levin::kernels::cuda {

/// dx (planes, h, w); dy and indices (planes, oh, ow).
template <class T, class I>
__global__ void max_gradient(T* dx, const T* dy, const I* indices, PoolAxes axes, std::int64_t count) {
  using C = ComputeType<T>;
  const PoolAxis &rows = axes.rows, &columns = axes.columns;
  for (std::int64_t t = global_thread(); t < count; t += grid_threads()) {
    const PoolPlace at(t, rows.size, columns.size);
    const PoolRange down = rows.outputs_over(at.row), across = columns.outputs_over(at.column);
    C sum = 0;
    for (std::int64_t i = down.begin; i < down.end; ++i) {
      const std::int64_t p = rows.step_at(i, at.row);
      if (p < 0) continue;
      for (std::int64_t j = across.begin; j < across.end; ++j) {
        const std::int64_t q = columns.step_at(j, at.column);
        const std::int64_t out = (at.plane * rows.outputs + i) * columns.outputs + j;
        if (q >= 0 && static_cast<std::int64_t>(indices[out]) == p * columns.kernel + q) sum += convert<C>(dy[out]);
      }
    }
    dx[t] = convert<T>(sum);
  }
}

void max_pool2d_backward(const MaxPool2dBackwardArgs& a, Stream& stream) {
  const std::int64_t count = a.geometry.planes * a.geometry.h * a.geometry.w;
  dispatch_pool(a.dx.dtype, a.geometry, "max_pool2d_backward", [&]<class T, class I>() {
    if (count == 0) return;
    launch(max_gradient<T, I>, {.grid = blocks_for(count), .block = 256, .stream = stream},
           static_cast<T*>(a.dx.pointer), static_cast<const T*>(a.dy.pointer), static_cast<const I*>(a.indices.pointer),
           PoolAxes(a.geometry), count);
  });
}

/// y = the elements of x at the indices.
template <class T, class I>
__global__ void pick_elements(T* y, const T* x, const I* indices, PoolAxes axes, std::int64_t count) {
  const PoolAxis &rows = axes.rows, &columns = axes.columns;
  for (std::int64_t t = global_thread(); t < count; t += grid_threads()) {
    const PoolPlace at(t, rows.outputs, columns.outputs);
    const Division step = divide(static_cast<std::int64_t>(indices[t]), columns.kernel);
    const std::int64_t row = rows.start(at.row) + step.quotient * rows.dilation;
    const std::int64_t column = columns.start(at.column) + step.remainder * columns.dilation;
    y[t] = x[(at.plane * rows.size + row) * columns.size + column];
  }
}

void max_pool2d_pick(const MaxPool2dArgs& a, Stream& stream) {
  const std::int64_t count = a.geometry.planes * a.geometry.oh * a.geometry.ow;
  dispatch_pool(a.x.dtype, a.geometry, "max_pool2d_pick", [&]<class T, class I>() {
    if (count == 0) return;
    launch(pick_elements<T, I>, {.grid = blocks_for(count), .block = 256, .stream = stream},
           static_cast<T*>(a.y.pointer), static_cast<const T*>(a.x.pointer), static_cast<const I*>(a.indices.pointer),
           PoolAxes(a.geometry), count);
  });
}

/// dy (planes, oh, ow); each output gives every element of its window the same share.
template <class T>
__global__ void average_gradient(T* dx, const T* dy, PoolAxes axes, std::int64_t count, bool count_padding) {
  using C = ComputeType<T>;
  const PoolAxis &rows = axes.rows, &columns = axes.columns;
  for (std::int64_t t = global_thread(); t < count; t += grid_threads()) {
    const PoolPlace at(t, rows.size, columns.size);
    const PoolRange down = rows.outputs_over(at.row), across = columns.outputs_over(at.column);
    C sum = 0;
    for (std::int64_t i = down.begin; i < down.end; ++i) {
      const std::int64_t height = rows.average_count(i, count_padding);
      const T* line = dy + (at.plane * rows.outputs + i) * columns.outputs;
      for (std::int64_t j = across.begin; j < across.end; ++j)
        sum += convert<C>(line[j]) / static_cast<C>(height * columns.average_count(j, count_padding));
    }
    dx[t] = convert<T>(sum);
  }
}

void avg_pool2d_backward(const AvgPool2dArgs& a, Stream& stream) {
  const std::int64_t count = a.geometry.planes * a.geometry.h * a.geometry.w;
  dispatch_floats(a.x.dtype, "avg_pool2d_backward", [&]<class T>() {
    if (count == 0) return;
    launch(average_gradient<T>, {.grid = blocks_for(count), .block = 256, .stream = stream},
           static_cast<T*>(a.x.pointer), static_cast<const T*>(a.y.pointer), PoolAxes(a.geometry), count,
           a.count_include_pad);
  });
}

}  // namespace levin::kernels::cuda
