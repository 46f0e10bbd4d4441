// gather and scatter: lines along one axis, each worked through in order by one thread.

#include "index.h"

#include <levin/core/parallel.h>
#include <levin/kernels/indexing.h>

#include <vector>

namespace levin::kernels {

namespace cpu {

namespace {

/// Where the coordinates of an index lie in a tensor of other (larger) sizes; everything contiguous.
struct Placement {
  Placement(const Shape& index, const Shape& sizes, int axis) {
    const Shape strides = contiguous_strides(sizes);
    step = strides[axis];
    for (int d = 0; d < axis; ++d) {
      outer_sizes.push_back(index[d]);
      outer_strides.push_back(strides[d]);
    }
    bool same = true;
    int64_t inner = 1;
    for (int d = axis + 1; d < index.size(); ++d) {
      inner *= index[d];
      same = same && index[d] == sizes[d];
    }
    if (same) return;
    offsets.resize(static_cast<std::size_t>(inner));
    for (int64_t j = 0; j < inner; ++j) {
      int64_t rest = j, at = 0;
      for (int d = index.size() - 1; d > axis; --d) {
        at += rest % index[d] * strides[d];
        rest /= index[d];
      }
      offsets[static_cast<std::size_t>(j)] = at;
    }
  }

  int64_t outer(int64_t o) const {
    int64_t at = 0;
    for (int d = outer_sizes.size() - 1; d >= 0; --d) {
      at += o % outer_sizes[d] * outer_strides[d];
      o /= outer_sizes[d];
    }
    return at;
  }
  int64_t inner(int64_t j) const { return offsets.empty() ? j : offsets[static_cast<std::size_t>(j)]; }

  int64_t step = 1;              ///< from one element of a line to the next
  Shape outer_sizes, outer_strides;
  std::vector<int64_t> offsets;  ///< of the axes after it; empty where they are the index's own
};

/// Calls body(outer, first, last, n, inner) for blocks of lines: all tasks together cover the index once.
template <class F>
void for_lines(const Shape& index, int axis, F&& body) {
  constexpr int64_t block = 256;
  int64_t outer = 1, inner = 1;
  const int64_t n = index.empty() ? 1 : index[axis];
  for (int d = 0; d < axis; ++d) outer *= index[d];
  for (int d = axis + 1; d < index.size(); ++d) inner *= index[d];
  if (outer * inner * n == 0) return;
  const int64_t blocks = (inner + block - 1) / block;
  parallel_for(0, outer * blocks, index_grain(n * std::min(inner, block)), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % blocks * block;
      body(task / blocks, first, std::min(first + block, inner), n, inner);
    }
  });
}

/// 0-dim tensors are lines of one element.
Shape with_axis(const Shape& sizes) { return sizes.empty() ? Shape{1} : sizes; }

void gather(const GatherArgs& a, Stream&) {
  const Shape index_sizes = with_axis(a.index.sizes), x_sizes = with_axis(a.x.sizes);
  const Placement from(index_sizes, x_sizes, a.axis);
  const int64_t size = x_sizes[a.axis];
  dispatch_size(a.out.dtype, [&]<class T>() {
    T* out = static_cast<T*>(a.out.pointer);
    const T* x = static_cast<const T*>(a.x.pointer);
    const int64_t* index = static_cast<const int64_t*>(a.index.pointer);
    for_lines(index_sizes, a.axis, [&](int64_t o, int64_t first, int64_t last, int64_t n, int64_t inner) {
      const T* line = x + from.outer(o);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t row = (o * n + i) * inner;
        for (int64_t j = first; j < last; ++j) {
          const int64_t v = index[row + j];
          if (!is_index(v, size)) index_out_of_range("gather", v, a.index.sizes, row + j, size);
          out[row + j] = line[v * from.step + from.inner(j)];
        }
      }
    });
  });
}

/// put(place, value) for every element of the index.
template <class T, class Put>
void scatter_with(const ScatterArgs& a, const char* op, Put put) {
  const Shape index_sizes = with_axis(a.index.sizes), out_sizes = with_axis(a.out.sizes);
  const Placement to(index_sizes, out_sizes, a.axis), from(index_sizes, with_axis(a.source.sizes), a.axis);
  const int64_t size = out_sizes[a.axis];
  T* out = static_cast<T*>(a.out.pointer);
  const T* source = static_cast<const T*>(a.source.pointer);
  const int64_t* index = static_cast<const int64_t*>(a.index.pointer);
  for_lines(index_sizes, a.axis, [&](int64_t o, int64_t first, int64_t last, int64_t n, int64_t inner) {
    T* out_line = out + to.outer(o);
    const T* source_line = source + from.outer(o);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = (o * n + i) * inner;
      for (int64_t j = first; j < last; ++j) {
        const int64_t v = index[row + j];
        if (!is_index(v, size)) index_out_of_range(op, v, a.index.sizes, row + j, size);
        put(out_line[v * to.step + to.inner(j)], source_line[i * from.step + from.inner(j)]);
      }
    }
  });
}

void scatter(const ScatterArgs& a, Stream&) {
  dispatch_size(a.out.dtype, [&]<class T>() { scatter_with<T>(a, "scatter", [](T& to, T value) { to = value; }); });
}

void scatter_add(const ScatterArgs& a, Stream&) {
  dispatch_numeric(a.out.dtype, "scatter_add", [&]<class T>() {
    scatter_with<T>(a, "scatter_add", [](T& to, T value) { to = static_cast<T>(to + value); });
  });
}

}  // namespace

}  // namespace cpu

constinit Kernel<void(const GatherArgs&, Stream&)> gather{"gather", cpu::gather};
constinit Kernel<void(const ScatterArgs&, Stream&)> scatter{"scatter", cpu::scatter};
constinit Kernel<void(const ScatterArgs&, Stream&)> scatter_add{"scatter_add", cpu::scatter_add};

}  // namespace levin::kernels
