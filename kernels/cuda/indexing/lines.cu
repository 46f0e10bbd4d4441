// gather and scatter along lines of one axis. When several elements go to the same place, short or many lines are
// processed in order by one thread each; for few long lines scatter determines the last element, and scatter_add sorts.

#include "kernels/cuda/indexing/index.cuh"
#include "kernels/cuda/indexing/order.h"

namespace levin::kernels::cuda {

namespace {

/// Returns the sizes with at least one axis: 0-dim tensors are lines of one element.
Shape with_axis(const Shape& sizes) { return sizes.empty() ? Shape{1} : sizes; }

}  // namespace

/// Geometry of an index whose values are positions along `axis` of a tensor of other sizes.
struct IndexLines {
  IndexLines(const Shape& index, const Shape& sizes, int axis)
      : n(index[axis]), size(sizes[axis]), step(contiguous_strides(sizes)[axis]), base(index, sizes, axis) {
    for (int d = 0; d < axis; ++d) outer *= index[d];
    for (int d = axis + 1; d < index.size(); ++d) inner *= index[d];
  }
  std::int64_t count() const { return outer * n * inner; }
  std::int64_t lines() const { return outer * inner; }

  std::int64_t outer = 1, inner = 1, n;  ///< of the index (outer, n, inner)
  std::int64_t size, step;               ///< size and stride of the axis in the other tensor
  Positions base;                        ///< offsets at which lines begin in that tensor
};

/// A scatter into `out` and the source of its values.
struct ScatterPlan {
  ScatterPlan(const ScatterArgs& a, const char* op, const Stream& stream)
      : lines(with_axis(a.index.sizes), with_axis(a.out.sizes), a.axis),
        from(with_axis(a.index.sizes), with_axis(a.source.sizes)),
        index(static_cast<const std::int64_t*>(a.index.pointer)),
        guard(index_guard(op, a.index.sizes, lines.size, stream)) {}

  /// Returns the destination of element `e`; -1 for none.
  __device__ std::int64_t target(std::int64_t e) const {
    const std::int64_t v = index[e];
    return admits(guard, v, e) ? lines.base.of(e) + v * lines.step : -1;
  }

  IndexLines lines;
  Positions from;
  const std::int64_t* index;
  IndexGuard guard;
};

namespace {

/// True if lines are short, or numerous enough to keep the device busy.
bool line_by_line(const IndexLines& l) { return l.n <= 64 || l.lines() >= 1 << 15; }

}  // namespace

template <class T>
__global__ void gather_elements(T* out, const T* x, const std::int64_t* index, IndexLines lines, std::int64_t count,
                                IndexGuard guard) {
  for (std::int64_t e = global_thread(); e < count; e += grid_threads()) {
    const std::int64_t v = index[e];
    out[e] = admits(guard, v, e) ? x[lines.base.of(e) + v * lines.step] : T{};
  }
}

void gather(const GatherArgs& a, Stream& stream) {
  const IndexLines lines(with_axis(a.index.sizes), with_axis(a.x.sizes), a.axis);
  if (lines.count() == 0) return;
  const IndexGuard guard = index_guard("gather", a.index.sizes, lines.size, stream);
  with_element(size_of(a.out.dtype), [&]<class T>() {
    launch(gather_elements<T>, {.grid = blocks_for(lines.count()), .block = 256, .stream = stream},
           static_cast<T*>(a.out.pointer), static_cast<const T*>(a.x.pointer),
           static_cast<const std::int64_t*>(a.index.pointer), lines, lines.count(), guard);
  });
}

struct Assign {
  template <class T>
  __device__ T operator()(T, T value) const {
    return value;
  }
};
struct Add {
  template <class T>
  __device__ T operator()(T to, T value) const {
    return add(to, value);
  }
};

/// One thread per line.
template <class T, class Put>
__global__ void scatter_lines(T* out, const T* source, ScatterPlan s, std::int64_t lines, Put put) {
  for (std::int64_t t = global_thread(); t < lines; t += grid_threads()) {
    const Division line = divide(t, s.lines.inner);
    const std::int64_t first = line.quotient * s.lines.n * s.lines.inner + line.remainder;
    for (std::int64_t i = 0; i < s.lines.n; ++i) {
      const std::int64_t e = first + i * s.lines.inner, to = s.target(e);
      if (to >= 0) out[to] = put(out[to], source[s.from.of(e)]);
    }
  }
}

template <class T, class Put>
void launch_scatter_lines(const ScatterArgs& a, const ScatterPlan& s, Put put, Stream& stream) {
  const std::int64_t lines = s.lines.lines();
  launch(scatter_lines<T, Put>, {.grid = blocks_for(lines, 128), .block = 128, .stream = stream},
         static_cast<T*>(a.out.pointer), static_cast<const T*>(a.source.pointer), s, lines, put);
}

/// last (elements of out) = 1 + the last element that goes there; 0 initially.
__global__ void claim_places(unsigned long long* last, ScatterPlan s, std::int64_t count) {
  for (std::int64_t e = global_thread(); e < count; e += grid_threads()) {
    const std::int64_t to = s.target(e);
    if (to >= 0) atomicMax(last + to, static_cast<unsigned long long>(e + 1));
  }
}
template <class T>
__global__ void scatter_last(T* out, const T* source, const unsigned long long* last, ScatterPlan s,
                             std::int64_t count) {
  for (std::int64_t e = global_thread(); e < count; e += grid_threads()) {
    const std::int64_t to = s.target(e);
    if (to >= 0 && last[to] == static_cast<unsigned long long>(e + 1)) out[to] = source[s.from.of(e)];
  }
}

void scatter(const ScatterArgs& a, Stream& stream) {
  const ScatterPlan s(a, "scatter", stream);
  const std::int64_t count = s.lines.count();
  if (count == 0) return;
  with_element(size_of(a.out.dtype), [&]<class T>() {
    if (line_by_line(s.lines)) return launch_scatter_lines<T>(a, s, Assign{}, stream);
    Scratch<unsigned long long> last(stream, a.out.numel());
    check(cudaMemsetAsync(last.get(), 0, last.bytes(), stream_of(stream)), "cudaMemsetAsync");
    launch(claim_places, {.grid = blocks_for(count), .block = 256, .stream = stream}, last.get(), s, count);
    launch(scatter_last<T>, {.grid = blocks_for(count), .block = 256, .stream = stream}, static_cast<T*>(a.out.pointer),
           static_cast<const T*>(a.source.pointer), last.get(), s, count);
  });
}

/// keys (count) = the destination of each element; `nowhere` for none.
__global__ void target_keys(std::uint64_t* keys, ScatterPlan s, std::int64_t count, std::int64_t nowhere) {
  for (std::int64_t e = global_thread(); e < count; e += grid_threads()) {
    const std::int64_t to = s.target(e);
    keys[e] = static_cast<std::uint64_t>(to >= 0 ? to : nowhere);
  }
}
/// The thread of a destination's first element adds up all of them. keys ascend.
template <class T>
__global__ void add_in_order(T* out, const T* source, const std::uint64_t* keys, const std::int64_t* places,
                             ScatterPlan s, std::int64_t count, std::int64_t nowhere) {
  for (std::int64_t t = global_thread(); t < count; t += grid_threads()) {
    const std::uint64_t key = keys[t];
    if (key == static_cast<std::uint64_t>(nowhere) || (t > 0 && keys[t - 1] == key)) continue;
    T sum = out[key];
    for (std::int64_t i = t; i < count && keys[i] == key; ++i) sum = add(sum, source[s.from.of(places[i])]);
    out[key] = sum;
  }
}

void scatter_add(const ScatterArgs& a, Stream& stream) {
  const ScatterPlan s(a, "scatter_add", stream);
  const std::int64_t count = s.lines.count(), nowhere = a.out.numel();
  dispatch_numeric(a.out.dtype, "scatter_add", [&]<class Element>() {
    using T = DeviceType<Element>;
    if (count == 0) return;
    if (line_by_line(s.lines)) return launch_scatter_lines<T>(a, s, Add{}, stream);
    StableOrder order(stream, count);
    launch(target_keys, {.grid = blocks_for(count), .block = 256, .stream = stream}, order.keys(), s, count, nowhere);
    order.sort(nowhere + 1);
    launch(add_in_order<T>, {.grid = blocks_for(count), .block = 256, .stream = stream}, static_cast<T*>(a.out.pointer),
           static_cast<const T*>(a.source.pointer), order.keys(), order.places(), s, count, nowhere);
  });
}

}  // namespace levin::kernels::cuda
