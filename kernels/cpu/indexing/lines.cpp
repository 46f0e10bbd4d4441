// gather and scatter: lines along one axis, each processed in order by one thread.

#include "index.h"
#include "kernels/src/table.h"

#include <levin/core/parallel.h>
#include <levin/kernels/indexing.h>

#include <algorithm>
#include <vector>

namespace levin::kernels {

namespace cpu {

namespace {

/// Positions of an index's coordinates in a tensor of other (larger) sizes; everything is contiguous.
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

  int64_t step = 1;              ///< distance between neighbouring elements of a line
  Shape outer_sizes, outer_strides;
  std::vector<int64_t> offsets;  ///< positions within the axes after it; empty if they equal the index's own
};

/// Consecutive elements of the index: `count` from `at` on, at step i of their lines, columns from `column` on. If a
/// line has no columns next to it, the run consists of elements of one line (`along`).
struct Run {
  int64_t outer, at, count, i, column;
  bool along;
};

/// Calls body(run) for the whole index; a line is processed in order by one thread.
template <class F>
void for_runs(const Shape& index, int axis, F&& body) {
  int64_t outer = 1, inner = 1;
  const int64_t n = index[axis];
  for (int d = 0; d < axis; ++d) outer *= index[d];
  for (int d = axis + 1; d < index.size(); ++d) inner *= index[d];
  if (outer * inner * n == 0) return;
  // Columns of one task: whole cache lines, and few enough that several threads share long lines.
  const int64_t block = std::clamp<int64_t>((inner / 4 + 15) / 16 * 16, 16, 256);
  const int64_t blocks = (inner + block - 1) / block;
  parallel_for(0, outer * blocks, index_grain(n * std::min(inner, block)), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t o = task / blocks, first = task % blocks * block, count = std::min(block, inner - first);
      if (inner == 1) {
        body(Run{o, o * n, n, 0, 0, true});
      } else {
        for (int64_t i = 0; i < n; ++i) body(Run{o, (o * n + i) * inner + first, count, i, first, false});
      }
    }
  });
}

/// One side of a run: element e is at first[e * unit], or at first[offsets[e]] if the sizes differ.
template <class T>
struct Side {
  Side(T* data, const Placement& p, const Run& run)
      : first(data + p.outer(run.outer)), unit(run.along ? 0 : 1),
        offsets(run.along || p.offsets.empty() ? nullptr : p.offsets.data() + run.column) {
    if (!offsets) first += run.column;
  }
  T* first;
  int64_t unit;
  const int64_t* offsets;
  T& operator()(int64_t e) const { return first[offsets ? offsets[e] : e * unit]; }
};

/// Treats 0-dim tensors as lines of one element.
Shape with_axis(const Shape& sizes) { return sizes.empty() ? Shape{1} : sizes; }

/// Computes out[e] = side(e) moved by index[e] steps. Also instantiated for equal sizes, where no offsets are read.
template <bool kOffsets, class T>
void gather_run(T* out, const Side<const T>& x, int64_t step, const int64_t* index, const Run& run, int64_t size,
                const Shape& index_sizes) {
  const T* first = x.first;
  const int64_t unit = x.unit;
  for (int64_t e = 0; e < run.count; ++e) {
    const int64_t v = index[e];
    if (!is_index(v, size)) index_out_of_range("gather", v, index_sizes, run.at + e, size);
    out[e] = first[v * step + (kOffsets ? x.offsets[e] : e * unit)];
  }
}

void gather(const GatherArgs& a, Stream&) {
  const Shape index_sizes = with_axis(a.index.sizes), x_sizes = with_axis(a.x.sizes);
  const Placement from(index_sizes, x_sizes, a.axis);
  const int64_t size = x_sizes[a.axis];
  dispatch_size(a.out.dtype, [&]<class T>() {
    for_runs(index_sizes, a.axis, [&](const Run& run) {
      const Side<const T> x(static_cast<const T*>(a.x.pointer), from, run);
      T* out = static_cast<T*>(a.out.pointer) + run.at;
      const int64_t* index = static_cast<const int64_t*>(a.index.pointer) + run.at;
      if (x.offsets) gather_run<true>(out, x, from.step, index, run, size, a.index.sizes);
      else gather_run<false>(out, x, from.step, index, run, size, a.index.sizes);
    });
  });
}

/// The same where the columns of out and source are those of the index: no offsets, and one check for a whole row.
template <class T, class Put>
void scatter_columns(const ScatterArgs& a, const Shape& index, const Placement& to, const Placement& from, int64_t size,
                     const char* op, Put put) {
  int64_t outer = 1, inner = 1;
  const int64_t n = index[a.axis];
  for (int d = 0; d < a.axis; ++d) outer *= index[d];
  for (int d = a.axis + 1; d < index.size(); ++d) inner *= index[d];
  const int64_t block = std::clamp<int64_t>((inner / 2 + 15) / 16 * 16, 16, 256), blocks = (inner + block - 1) / block;
  parallel_for(0, outer * blocks, index_grain(n * std::min(inner, block)), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t o = task / blocks, first = task % blocks * block, count = std::min(block, inner - first);
      T* const out = a.out.data<T>() + to.outer(o) + first;
      const T* source = a.source.data<T>() + from.outer(o) + first;
      for (int64_t i = 0; i < n; ++i, source += from.step) {
        const int64_t at = (o * n + i) * inner + first;
        const int64_t* const row = a.index.data<int64_t>() + at;
        int64_t outside = 0;
        for (int64_t e = 0; e < count; ++e) outside |= is_index(row[e], size) ? 0 : 1;
        for (int64_t e = 0; outside && e < count; ++e)
          if (!is_index(row[e], size)) index_out_of_range(op, row[e], a.index.sizes, at + e, size);
        for (int64_t e = 0; e < count; ++e) put(out[row[e] * to.step + e], source[e]);
      }
    }
  });
}

/// Calls put(place, value) for every element of the index.
template <class T, class Put>
void scatter_with(const ScatterArgs& a, const char* op, Put put) {
  const Shape index_sizes = with_axis(a.index.sizes), out_sizes = with_axis(a.out.sizes);
  const Placement to(index_sizes, out_sizes, a.axis), from(index_sizes, with_axis(a.source.sizes), a.axis);
  const int64_t size = out_sizes[a.axis];
  if (a.axis + 1 < index_sizes.size() && to.offsets.empty() && from.offsets.empty())
    return scatter_columns<T>(a, index_sizes, to, from, size, op, put);
  for_runs(index_sizes, a.axis, [&](const Run& run) {
    const Side<T> out(static_cast<T*>(a.out.pointer), to, run);
    Side<const T> source(static_cast<const T*>(a.source.pointer), from, run);
    source.first += run.i * from.step;
    if (run.along) source.unit = from.step;
    const int64_t* index = static_cast<const int64_t*>(a.index.pointer) + run.at;
    for (int64_t e = 0; e < run.count; ++e) {
      const int64_t v = index[e];
      if (!is_index(v, size)) index_out_of_range(op, v, a.index.sizes, run.at + e, size);
      put((&out(e))[v * to.step], source(e));
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

template <bool largest>
void scatter_extreme(const ScatterArgs& a, Stream&) {
  dispatch_numeric(a.out.dtype, largest ? "scatter_max" : "scatter_min", [&]<class T>() {
    scatter_with<T>(a, largest ? "scatter_max" : "scatter_min", [](T& to, T value) {
      const T extreme = largest ? (value > to ? value : to) : (value < to ? value : to);  // no branch
      to = value != value ? value : extreme;
    });
  });
}

}  // namespace

}  // namespace cpu

LEVIN_HOST_ONLY(ScatterArgs, scatter_max, cpu::scatter_extreme<true>, "on CUDA extremes are found by a sort");
LEVIN_HOST_ONLY(ScatterArgs, scatter_min, cpu::scatter_extreme<false>, "on CUDA extremes are found by a sort");
LEVIN_KERNEL(GatherArgs, gather, cpu::gather);
LEVIN_KERNEL(ScatterArgs, scatter, cpu::scatter);
LEVIN_KERNEL(ScatterArgs, scatter_add, cpu::scatter_add);

}  // namespace levin::kernels
