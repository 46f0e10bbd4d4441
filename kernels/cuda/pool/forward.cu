// Max and average pooling: threads own outputs. Neighbouring windows overlap in the cache.

#include "kernels/cuda/pool/windows.cuh"

#include <limits>

namespace levin::kernels::cuda {

/// x (planes, h, w); y and indices (planes, oh, ow); indices may be null.
template <class T, class I, class N>
__global__ void max_windows(T* y, I* indices, const T* x, PoolAxes<N> axes, N count) {
  using C = ComputeType<T>;
  const PoolAxis<N>&rows = axes.rows, &columns = axes.columns;
  for (N t = pool_thread<N>(); t < count; t += pool_threads<N>()) {
    const PoolPlace<N> at(t, rows.outputs, columns.outputs);
    const PoolRange<N> down = rows.inside(at.row), across = columns.inside(at.column);
    const T* corner =
        x + (at.plane * rows.size.value + rows.start(at.row)) * columns.size.value + columns.start(at.column);
    C best = -std::numeric_limits<C>::infinity();
    N code = down.begin * columns.kernel + across.begin;
    for (N p = down.begin; p < down.end; ++p) {
      for (N q = across.begin; q < across.end; ++q) {
        const C v = convert<C>(corner[p * rows.dilation.value * columns.size.value + q * columns.dilation.value]);
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

/// The same for windows of kKernel x kKernel elements. A thread loads its next outputs' windows before it compares any
/// of their elements.
template <class T, class I, int kKernel>
__global__ void max_small_windows(T* y, I* indices, const T* x, PoolAxes<std::int32_t> axes, std::int32_t count) {
  using C = ComputeType<T>;
  constexpr int kEach = 2, kSize = kKernel * kKernel;
  const PoolAxis<std::int32_t>&rows = axes.rows, &columns = axes.columns;
  const auto threads = pool_threads<std::int32_t>();
  for (auto first = pool_thread<std::int32_t>(); first < count; first += kEach * threads) {
    T values[kEach][kSize];
    bool inside[kEach][kSize];
    LEVIN_PRAGMA_UNROLL
    for (int e = 0; e < kEach; ++e) {
      const std::int32_t t = first + e * threads;
      const PoolPlace<std::int32_t> at(t < count ? t : first, rows.outputs, columns.outputs);
      const std::int32_t top = rows.start(at.row), left = columns.start(at.column);
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kSize; ++i) {
        const std::int32_t row = top + i / kKernel * rows.dilation.value;
        const std::int32_t column = left + i % kKernel * columns.dilation.value;
        inside[e][i] = row >= 0 && row < rows.size.value && column >= 0 && column < columns.size.value;
        values[e][i] = inside[e][i] ? x[(at.plane * rows.size.value + row) * columns.size.value + column] : T{};
      }
    }
    LEVIN_PRAGMA_UNROLL
    for (int e = 0; e < kEach; ++e) {
      const std::int32_t t = first + e * threads;
      C best = 0;
      int code = -1;
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kSize; ++i) {
        const C v = convert<C>(values[e][i]);
        if (inside[e][i] && (code < 0 || v > best || v != v)) best = v, code = i;
      }
      if (t < count) {
        y[t] = convert<T>(best);
        if (indices) indices[t] = static_cast<I>(code);
      }
    }
  }
}

/// The same for 2 x 2 windows side by side, in rows that consist of packs of 16 bytes: a thread reads a pack of each of
/// the two rows. The pointers are aligned, and no window reaches over the plane's border.
template <class T, class I>
__global__ void max_pairs(T* y, I* indices, const T* x, PoolAxes<std::int32_t> axes, std::int32_t count) {
  using C = ComputeType<T>;
  constexpr int kWidth = 16 / static_cast<int>(sizeof(T)), kEach = kWidth / 2;
  const PoolAxis<std::int32_t>&rows = axes.rows, &columns = axes.columns;
  const std::int32_t step = pool_threads<std::int32_t>() * kEach;
  for (std::int32_t first = pool_thread<std::int32_t>() * kEach; first < count; first += step) {
    const PoolPlace<std::int32_t> at(first, rows.outputs, columns.outputs);
    const T* corner = x + (at.plane * rows.size.value + rows.start(at.row)) * columns.size.value + at.column * 2;
    const Pack<T, kWidth> above = pack_at<kWidth>(corner), below = pack_at<kWidth>(corner + columns.size.value);
    Pack<T, kEach> best;
    Pack<I, kEach> codes;
    LEVIN_PRAGMA_UNROLL
    for (int e = 0; e < kEach; ++e) {
      const T window[] = {above[2 * e], above[2 * e + 1], below[2 * e], below[2 * e + 1]};
      int code = 0;
      C largest = convert<C>(window[0]);
      LEVIN_PRAGMA_UNROLL
      for (int i = 1; i < 4; ++i) {
        const C v = convert<C>(window[i]);
        if (v > largest || v != v) largest = v, code = i;
      }
      best[e] = convert<T>(largest);
      codes[e] = static_cast<I>(code);
    }
    pack_at<kEach>(y + first) = best;
    if (indices) pack_at<kEach>(indices + first) = codes;
  }
}

template <class T, class I, class N>
void launch_max(const MaxPool2dArgs& a, std::int64_t count, Stream& stream) {
  const PoolGeometry& g = a.geometry;
  T* const y = static_cast<T*>(a.y.pointer);
  I* const indices = static_cast<I*>(a.indices.pointer);
  const T* const x = static_cast<const T*>(a.x.pointer);
  const LaunchConfig config{.grid = blocks_for(count), .block = 256, .stream = stream};
  const PoolAxes<N> axes(g);
  const auto outputs = static_cast<N>(count);
  if constexpr (sizeof(N) == 4) {
    constexpr std::int64_t kWidth = 16 / static_cast<std::int64_t>(sizeof(T));
    const bool fits = g.padding_h == 0 && g.dilation_h == 1 && (g.oh - 1) * g.stride_h + 2 <= g.h;
    if (g.kernel_h == 2 && fits && windows_in_pairs(g) && g.w % kWidth == 0 && aligned_16(y, indices, x)) {
      return launch(max_pairs<T, I>, {.grid = blocks_for(count / (kWidth / 2)), .block = 256, .stream = stream}, y,
                    indices, x, axes, outputs);
    }
    if (g.kernel_h == 2 && g.kernel_w == 2) {
      return launch(max_small_windows<T, I, 2>, config, y, indices, x, axes, outputs);
    }
    if (g.kernel_h == 3 && g.kernel_w == 3) {
      return launch(max_small_windows<T, I, 3>, config, y, indices, x, axes, outputs);
    }
  }
  launch(max_windows<T, I, N>, config, y, indices, x, axes, outputs);
}

void max_pool2d(const MaxPool2dArgs& a, Stream& stream) {
  const std::int64_t count = a.geometry.planes * a.geometry.oh * a.geometry.ow;
  dispatch_pool(a.x.dtype, a.geometry, "max_pool2d", [&]<class T, class I, class N>() {
    if (count > 0) launch_max<T, I, N>(a, count, stream);
  });
}

template <class T, class N>
__global__ void average_windows(T* y, const T* x, PoolAxes<N> axes, N count, bool count_padding) {
  using C = ComputeType<T>;
  const PoolAxis<N>&rows = axes.rows, &columns = axes.columns;
  for (N t = pool_thread<N>(); t < count; t += pool_threads<N>()) {
    const PoolPlace<N> at(t, rows.outputs, columns.outputs);
    const PoolRange<N> down = rows.inside(at.row), across = columns.inside(at.column);
    const T* corner =
        x + (at.plane * rows.size.value + rows.start(at.row)) * columns.size.value + columns.start(at.column);
    C sum = 0;
    for (N p = down.begin; p < down.end; ++p)
      for (N q = across.begin; q < across.end; ++q) sum += convert<C>(corner[p * columns.size.value + q]);
    const std::int64_t height = rows.average_count(at.row, count_padding);
    y[t] = convert<T>(sum / static_cast<C>(height * columns.average_count(at.column, count_padding)));
  }
}

void avg_pool2d(const AvgPool2dArgs& a, Stream& stream) {
  const std::int64_t count = a.geometry.planes * a.geometry.oh * a.geometry.ow;
  dispatch_averages(a.x.dtype, a.geometry, "avg_pool2d", [&]<class T, class N>() {
    if (count == 0) return;
    launch(average_windows<T, N>, {.grid = blocks_for(count), .block = 256, .stream = stream},
           static_cast<T*>(a.y.pointer), static_cast<const T*>(a.x.pointer), PoolAxes<N>(a.geometry),
           static_cast<N>(count), a.count_include_pad);
  });
}

}  // namespace levin::kernels::cuda
