// gather and scatter: lines along one axis. Those of scatter are processed in order, each by one thread.

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

/// A part of the index that one thread processes in order: `steps` rows of `count` elements, `row_step` apart and the
/// first at `at`, which are columns from `column` on. If a line has no columns next to it, the block is one line, or a
/// part of it (`along`).
struct Block {
  int64_t outer, at, count, column, steps, row_step;
  bool along;
};

/// A reference to a function, which is called for a whole block, so that the rest is compiled once for all types.
template <class Argument>
class Body {
 public:
  template <class F>
  Body(const F& f) : f_(&f), call_([](const void* g, const Argument& x) { (*static_cast<const F*>(g))(x); }) {}
  void operator()(const Argument& x) const { call_(f_, x); }

 private:
  const void* f_;
  void (*call_)(const void*, const Argument&);
};

/// Calls body(block) for the whole index. The columns of a line are divided by `shares`: whole cache lines, and few
/// enough that several threads share long lines. A line without columns is divided into parts of `longest` elements.
void for_blocks(const Shape& index, int axis, int64_t shares, int64_t longest, Body<Block> body) {
  int64_t outer = 1, inner = 1;
  const int64_t n = index[axis];
  for (int d = 0; d < axis; ++d) outer *= index[d];
  for (int d = axis + 1; d < index.size(); ++d) inner *= index[d];
  if (outer * inner * n == 0) return;
  const bool along = inner == 1;
  const int64_t whole = along ? n : inner;
  const int64_t width = along ? longest : std::clamp<int64_t>((inner / shares + 15) / 16 * 16, 16, 256);
  const int64_t blocks = (whole + width - 1) / width;
  const int64_t elements = (along ? 1 : n) * std::min(whole, width);
  parallel_for(0, outer * blocks, index_grain(elements), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t o = task / blocks, first = task % blocks * width, count = std::min(width, whole - first);
      if (along) body({o, o * n + first, count, 0, 1, 0, true});
      else body({o, o * n * inner + first, count, first, n, inner, false});
    }
  });
}

/// One side of a row: element e is at first[e * unit], or at first[offsets[e]] if the sizes differ.
template <class T>
struct Side {
  Side(T* data, const Placement& p, const Block& block)
      : first(data + p.outer(block.outer)), unit(block.along ? 0 : 1),
        offsets(block.along || p.offsets.empty() ? nullptr : p.offsets.data() + block.column) {
    if (!offsets) first += block.column;
  }
  T* first;
  int64_t unit;
  const int64_t* offsets;
  T& operator()(int64_t e) const { return first[offsets ? offsets[e] : e * unit]; }
};

/// Treats 0-dim tensors as lines of one element.
Shape with_axis(const Shape& sizes) { return sizes.empty() ? Shape{1} : sizes; }

/// Throws for the first of `count` elements of the index, from `at` on, that is outside.
void refuse(const char* op, const TensorView& index, int64_t at, int64_t count, int64_t size) {
  const int64_t* const row = index.data<int64_t>() + at;
  for (int64_t e = 0; e < count; ++e)
    if (!is_index(row[e], size)) index_out_of_range(op, row[e], index.sizes, at + e, size);
}

/// Computes out[e] = side(e) moved by index[e] steps. Also instantiated for equal sizes, where no offsets are read.
/// False at an index that is outside.
template <bool kOffsets, class T>
bool gather_row(T* out, const Side<const T>& x, int64_t step, const int64_t* index, int64_t count, int64_t size) {
  const T* first = x.first;
  const int64_t unit = x.unit;
  for (int64_t e = 0; e < count; ++e) {
    const int64_t v = index[e];
    if (!is_index(v, size)) return false;
    out[e] = first[v * step + (kOffsets ? x.offsets[e] : e * unit)];
  }
  return true;
}

void gather(const GatherArgs& a, Stream&) {
  const Shape index_sizes = with_axis(a.index.sizes), x_sizes = with_axis(a.x.sizes);
  const Placement from(index_sizes, x_sizes, a.axis);
  const int64_t size = x_sizes[a.axis];
  dispatch_size(a.out.dtype, [&]<class T>() {
    for_blocks(index_sizes, a.axis, 4, kIndexGrain, [&](const Block& block) {
      const Side<const T> x(static_cast<const T*>(a.x.pointer), from, block);
      for (int64_t i = 0, at = block.at; i < block.steps; ++i, at += block.row_step) {
        T* out = static_cast<T*>(a.out.pointer) + at;
        const int64_t* index = static_cast<const int64_t*>(a.index.pointer) + at;
        const bool inside = x.offsets ? gather_row<true>(out, x, from.step, index, block.count, size)
                                      : gather_row<false>(out, x, from.step, index, block.count, size);
        if (!inside) refuse("gather", a.index, at, block.count, size);
      }
    });
  });
}

/// A block of the index with the placements of its elements in out and in the source.
struct ScatterBlock {
  Block index;
  const Placement &to, &from;
  int64_t size;  ///< of out's axis
  bool rows;     ///< the columns of out and source are those of the index
};

void for_scattered(const ScatterArgs& a, Body<ScatterBlock> body) {
  const Shape index_sizes = with_axis(a.index.sizes), out_sizes = with_axis(a.out.sizes);
  const Placement to(index_sizes, out_sizes, a.axis), from(index_sizes, with_axis(a.source.sizes), a.axis);
  const int64_t size = out_sizes[a.axis];
  const bool rows = a.axis + 1 < index_sizes.size() && to.offsets.empty() && from.offsets.empty();
  for_blocks(index_sizes, a.axis, rows ? 2 : 4, index_sizes[a.axis], [&](const Block& block) {
    body({block, to, from, size, rows && !block.along});
  });
}

/// Calls put(place, value) for every element of the index.
template <class T, class Put>
void scatter_with(const ScatterArgs& a, const char* op, Put put) {
  for_scattered(a, [&a, op, put](const ScatterBlock& s) {
    const Block block = s.index;  // copied with all that the loops read, which writing to out might change otherwise
    const Side<T> out(static_cast<T*>(a.out.pointer), s.to, block);
    Side<const T> source(static_cast<const T*>(a.source.pointer), s.from, block);
    const int64_t size = s.size, out_step = s.to.step, source_step = s.from.step;
    if (block.along) source.unit = source_step;
    for (int64_t i = 0, at = block.at; i < block.steps; ++i, at += block.row_step, source.first += source_step) {
      const int64_t* const index = static_cast<const int64_t*>(a.index.pointer) + at;
      int64_t outside = 0;
      for (int64_t e = 0; e < block.count; ++e) outside |= is_index(index[e], size) ? 0 : 1;
      if (outside) refuse(op, a.index, at, block.count, size);
      if (s.rows)
        for (int64_t e = 0; e < block.count; ++e) put(out.first[index[e] * out_step + e], source.first[e]);
      else
        for (int64_t e = 0; e < block.count; ++e) put((&out(e))[index[e] * out_step], source(e));
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
