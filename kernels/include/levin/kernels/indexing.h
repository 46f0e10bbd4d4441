#pragma once
// Contracts of operations that move elements by position, or read between positions. Indices are int64; an index
// outside [0, size) throws IndexError, tagged `op`, with its value, position and the size. On CUDA the error is thrown
// when the host next waits for the device; until then, such an index reads zeros and writes nothing. All tensors are
// contiguous and outputs overlap no input. Elements are moved by their size, so every type is accepted, except where
// sums are stated. Bytes: data that is read and written, once each.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// Concatenates the parts along `axis`; all have out's type, rank and other sizes.
struct CatArgs {
  TensorView out;
  std::span<const TensorView> parts;
  int axis = 0;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    Work w{bytes(out), 0, out.dtype};
    for (const auto& part : parts) w.bytes += bytes(part);
    return w;
  }
  /// Copies the list for a capture.
  void own_lists() { own_list(parts); }
};
extern constinit Kernel<void(const CatArgs&, Stream&)> cat;

/// Selects k slices of an axis of size n: out (outer, k, inner) = x (outer, n, inner)[:, index, :], with index (k).
/// Errors name the operation `op`.
struct IndexSelectArgs {
  TensorView out, x, index;
  int64_t outer = 1, n = 1, inner = 1;
  const char* op = "index_select";

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    return {2 * bytes(out) + bytes(index), 0, out.dtype};
  }
};
extern constinit Kernel<void(const IndexSelectArgs&, Stream&)> index_select;

/// Computes out (outer, n, inner)[:, index[i], :] += source (outer, k, inner)[:, i, :] for i = 0, 1, ... in this order,
/// except where index[i] == skip, with index (k). Numeric types; the sum is computed in out's type. Errors name the
/// operation `op`. Flops: one per element of source.
struct IndexAddArgs {
  TensorView out, source, index;
  int64_t outer = 1, n = 1, inner = 1;
  int64_t skip = -1;
  const char* op = "index_add";

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    return {3 * bytes(source) + bytes(index), count(source), out.dtype};
  }
};
extern constinit Kernel<void(const IndexAddArgs&, Stream&)> index_add;

/// Computes out[..., i, ...] = x[..., index[..., i, ...], ...] where out has index's sizes, which are at most x's
/// except along `axis`.
struct GatherArgs {
  TensorView out, x, index;
  int axis = 0;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {2 * bytes(out) + bytes(index), 0, out.dtype}; }
};
extern constinit Kernel<void(const GatherArgs&, Stream&)> gather;

/// Computes out[..., index[..., i, ...], ...] = (scatter) or += (scatter_add) source[..., i, ...] for i = 0, 1, ... in
/// this order, or keeps the larger (scatter_max) or smaller (scatter_min) of both, NaN if one is. index's sizes are at
/// most source's, and at most out's except along `axis`. All but scatter take numeric types.
struct ScatterArgs {
  TensorView out, source, index;
  int axis = 0;

  /// Returns the minimum work of a call.
  Work work(std::string_view kernel) const {
    const double moved = count(index) * static_cast<double>(size_of(out.dtype));
    const bool adds = kernel != "scatter";
    return {moved * (adds ? 3 : 2) + bytes(index), adds ? count(index) : 0, out.dtype};
  }
};
extern constinit Kernel<void(const ScatterArgs&, Stream&)> scatter, scatter_add, scatter_max, scatter_min;

/// Number of elements of x that count_nonzero counts together.
inline constexpr int64_t kNonzeroChunk = 1 << 14;

/// Counts the nonzero elements of each chunk of x (any type): counts (ceil(numel / kNonzeroChunk)) int64.
struct CountNonzeroArgs {
  TensorView counts, x;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    return {bytes(counts, x), count(x), x.dtype};
  }
};
extern constinit Kernel<void(const CountNonzeroArgs&, Stream&)> count_nonzero;

/// Writes the coordinates of the nonzero elements of x, in row-major order, to out (sum of counts, dims of x) int64.
struct NonzeroArgs {
  TensorView out, x, counts;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(out, x, counts), 0, x.dtype}; }
};
extern constinit Kernel<void(const NonzeroArgs&, Stream&)> nonzero;

/// Computes out = x (batch, rows, columns) where column - row <= diagonal, or >= diagonal if `upper`, else 0. out may
/// be x.
struct TriangleArgs {
  TensorView out, x;
  int64_t batch = 1, rows = 1, columns = 1;
  int64_t diagonal = 0;
  bool upper = false;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(out, x), 0, out.dtype}; }
};
extern constinit Kernel<void(const TriangleArgs&, Stream&)> triangle;

/// Computes out (n, classes) int64 = 1 where the column is index (n), else 0.
struct OneHotArgs {
  TensorView out, index;
  int64_t classes = 1;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(out, index), 0, out.dtype}; }
};
extern constinit Kernel<void(const OneHotArgs&, Stream&)> one_hot;

/// The list of positions along one axis: place i of the padded axis repeats place positions[i] of an axis of n places.
/// Places [before, before + n) are these n in order.
struct PaddedAxis {
  int axis = 0;
  int64_t before = 0;
  std::span<const int64_t> positions;
};

/// For a capture: copies the positions of a list of axes that is copied already.
inline void own_positions(std::span<const PaddedAxis> axes) {
  for (const PaddedAxis& axis : axes) own_list(const_cast<PaddedAxis&>(axis).positions);  // the copy is not constant
}

/// Computes out[i0, i1, ...] = x[p0[i0], p1[i1], ...], where p is the list of positions of an axis in `axes` (rising,
/// at least one), and p[i] = i for the others.
struct PadArgs {
  TensorView out, x;
  std::span<const PaddedAxis> axes;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(out, x), 0, out.dtype}; }
  /// Copies the lists for a capture.
  void own_lists() { own_list(axes), own_positions(axes); }
};
extern constinit Kernel<void(const PadArgs&, Stream&)> pad;

/// Computes dx[j0, j1, ...] = the sum of g[i0, i1, ...] over all places with p0[i0] = j0, p1[i1] = j1, ..., in the
/// order of the places; `axes` is that of pad. float32 and float64. Flops: one per element of g.
struct PadBackwardArgs {
  TensorView dx, g;
  std::span<const PaddedAxis> axes;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(dx, g), count(g), g.dtype}; }
  /// Copies the lists for a capture.
  void own_lists() { own_list(axes), own_positions(axes); }
};
extern constinit Kernel<void(const PadBackwardArgs&, Stream&)> pad_backward;

/// Combines the parts' indices, which have out's sizes: out = the sum of their positions times `step`, where a negative
/// index counts from the end of `size`. *inside tells whether all are in [-size, size); else out has no meaning. As the
/// caller needs it at once, no capture contains this kernel.
struct IndexPositionsArgs {
  /// Positions `index` in an axis of `size` places, which are `step` elements apart.
  struct Part {
    TensorView index;
    int64_t size = 1, step = 1;
  };
  TensorView out;
  std::span<const Part> parts;
  bool* inside = nullptr;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    return {bytes(out) * static_cast<double>(1 + parts.size()), 0, out.dtype};
  }
  /// Copies the list for a capture.
  void own_lists() { own_list(parts); }
};
extern constinit Kernel<void(const IndexPositionsArgs&, Stream&)> index_positions;

/// Computes out (batch, channels, points) = x (batch, channels, h, w) at the row `row` and the column `column` (batch,
/// points), counted in pixels, interpolated bilinearly between the four pixels around it. Pixels outside of the image
/// are 0, and so are all four of a position that is NaN, but the weights stay NaN. Floating types. Flops: 8 per element
/// of out.
struct BilinearArgs {
  TensorView out, x, row, column;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {2 * bytes(out) + bytes(row, column), 8 * count(out), out.dtype}; }
};
extern constinit Kernel<void(const BilinearArgs&, Stream&)> bilinear;

/// Computes the gradients dx, drow and dcolumn of x, row and column of a BilinearArgs call from that of its out, g.
/// Sums over points and channels run in a fixed order. float32 and float64. Flops: 24 per element of g.
struct BilinearBackwardArgs {
  TensorView dx, drow, dcolumn, g, x, row, column;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    return {bytes(dx, drow, dcolumn) + bytes(g, x, row) + bytes(column), 24 * count(g), g.dtype};
  }
};
extern constinit Kernel<void(const BilinearBackwardArgs&, Stream&)> bilinear_backward;

}  // namespace levin::kernels
