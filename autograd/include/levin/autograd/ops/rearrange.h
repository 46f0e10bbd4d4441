#pragma once
// Compositions that join, repeat, move and select parts of tensors. Views are returned where that is possible.

#include <levin/core/tensor.h>

#include <array>

namespace levin {

// Joining.

/// Joins along axis 1, or 0 for vectors.
Tensor hstack(std::span<const Tensor> tensors);
Tensor hstack(std::initializer_list<Tensor> tensors);
/// Joins along axis 0; vectors become rows.
Tensor vstack(std::span<const Tensor> tensors);
Tensor vstack(std::initializer_list<Tensor> tensors);
/// Joins along axis 2, which tensors with fewer axes get as a new one.
Tensor dstack(std::span<const Tensor> tensors);
Tensor dstack(std::initializer_list<Tensor> tensors);
/// Joins along axis 1; vectors become columns.
Tensor column_stack(std::span<const Tensor> tensors);
Tensor column_stack(std::initializer_list<Tensor> tensors);
/// Puts matrices (vectors are rows) on the diagonal of a matrix of zeros.
Tensor block_diag(std::span<const Tensor> tensors);
Tensor block_diag(std::initializer_list<Tensor> tensors);
/// Returns all combinations of the vectors' elements as rows.
Tensor cartesian_prod(std::span<const Tensor> tensors);
Tensor cartesian_prod(std::initializer_list<Tensor> tensors);
/// Returns the r-element subsets of the vector x, in order, as rows.
Tensor combinations(const Tensor& x, int64_t r = 2, bool with_replacement = false);
/// Order of meshgrid's axes; `xy` exchanges the first two (NumPy's default).
enum class Indexing { ij, xy };
/// Returns the coordinates of a grid of the vectors: tensor k has the elements of vector k along axis k, and repeats
/// them along the others.
std::vector<Tensor> meshgrid(std::span<const Tensor> tensors, Indexing indexing = Indexing::ij);
std::vector<Tensor> meshgrid(std::initializer_list<Tensor> tensors, Indexing indexing = Indexing::ij);

// Repeating and broadcasting.

/// Repeats x along each axis; more counts than axes add axes in front.
Tensor repeat(const Tensor& x, const Shape& counts);
/// As repeat; fewer counts than axes leave the first axes alone.
Tensor tile(const Tensor& x, const Shape& counts);
/// Repeats each element; without an axis x is flattened. `counts` (n) gives a count for each slice.
Tensor repeat_interleave(const Tensor& x, int64_t count, std::optional<int64_t> axis = std::nullopt);
Tensor repeat_interleave(const Tensor& x, const Tensor& counts, std::optional<int64_t> axis = std::nullopt);
/// Returns a view of x with these sizes, as expand.
Tensor broadcast_to(const Tensor& x, const Shape& sizes);
/// Returns views of the tensors with the sizes to which they all broadcast.
std::vector<Tensor> broadcast_tensors(std::span<const Tensor> tensors);
std::vector<Tensor> broadcast_tensors(std::initializer_list<Tensor> tensors);
/// expand, view and reshape to the sizes of `other`.
Tensor expand_as(const Tensor& x, const Tensor& other);
Tensor view_as(const Tensor& x, const Tensor& other);
Tensor reshape_as(const Tensor& x, const Tensor& other);

// Moving axes and elements.

/// Moves each axis of `source` to its place in `destination`; the others keep their order. moveaxis is the same.
Tensor movedim(const Tensor& x, const Axes& source, const Axes& destination);
Tensor moveaxis(const Tensor& x, const Axes& source, const Axes& destination);
/// Exchange two axes, as transpose.
Tensor swapaxes(const Tensor& x, int64_t a, int64_t b);
Tensor swapdims(const Tensor& x, int64_t a, int64_t b);
/// Divides an axis into axes of these sizes, one of which may be -1.
Tensor unflatten(const Tensor& x, int64_t axis, const Shape& sizes);
/// Returns x as a vector, in row-major order.
Tensor ravel(const Tensor& x);
/// Return x with one, two or three axes at least; new ones have size 1 and stand where NumPy's stand.
Tensor atleast_1d(const Tensor& x);
Tensor atleast_2d(const Tensor& x);
Tensor atleast_3d(const Tensor& x);
/// Moves elements by `shifts` along axes; those that leave come back at the other end. Without axes x is flattened.
Tensor roll(const Tensor& x, const Shape& shifts, const Axes& axes = {});
/// Rotates by k quarter turns from the first axis towards the second.
Tensor rot90(const Tensor& x, int64_t k = 1, std::array<int64_t, 2> axes = {0, 1});
/// Reverse the order along axis 1, and along axis 0.
Tensor fliplr(const Tensor& x);
Tensor flipud(const Tensor& x);
/// Splits into `sections` parts, whose sizes differ by one at most, or at positions.
std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int64_t axis = 0);
std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<int64_t>& positions, int64_t axis = 0);
/// tensor_split along axis 1 (0 of a vector), 0 and 2.
std::vector<Tensor> hsplit(const Tensor& x, int64_t sections);
std::vector<Tensor> hsplit(const Tensor& x, const std::vector<int64_t>& positions);
std::vector<Tensor> vsplit(const Tensor& x, int64_t sections);
std::vector<Tensor> vsplit(const Tensor& x, const std::vector<int64_t>& positions);
std::vector<Tensor> dsplit(const Tensor& x, int64_t sections);
std::vector<Tensor> dsplit(const Tensor& x, const std::vector<int64_t>& positions);
/// Rearranges (*, C r^2, H, W) to (*, C, H r, W r), and back. Shi et al. 2016.
Tensor pixel_shuffle(const Tensor& x, int64_t upscale_factor);
Tensor pixel_unshuffle(const Tensor& x, int64_t downscale_factor);
/// Exchanges groups of channels of (B, C, ...). Zhang et al. 2018.
Tensor channel_shuffle(const Tensor& x, int64_t groups);

// Diagonals.

/// Returns a view of a diagonal of two axes, which becomes the last axis.
Tensor diagonal(const Tensor& x, int64_t offset = 0, int64_t axis1 = 0, int64_t axis2 = 1);
/// Puts x's last axis on the diagonal of two new axes of zeros.
Tensor diag_embed(const Tensor& x, int64_t offset = 0, int64_t axis1 = -2, int64_t axis2 = -1);
/// The diagonal of a matrix, or the matrix with this vector as diagonal.
Tensor diag(const Tensor& x, int64_t diagonal = 0);
/// The matrix with x, read as a vector, on this diagonal.
Tensor diagflat(const Tensor& x, int64_t offset = 0);
/// The sum of a matrix's diagonal.
Tensor trace(const Tensor& x);
/// Returns the positions of a triangle of a (rows, columns) matrix, (2, n) int64.
Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset = 0);
Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset = 0);

// Selecting and writing.

/// Returns x with `source` in place of x.select(axis, index), x.slice(axis, range) or x.diagonal(...).
Tensor select_scatter(const Tensor& x, const Tensor& source, int64_t axis, int64_t index);
Tensor slice_scatter(const Tensor& x, const Tensor& source, int64_t axis, const Slice& range);
Tensor diagonal_scatter(const Tensor& x, const Tensor& source, int64_t offset = 0, int64_t axis1 = 0,
                        int64_t axis2 = 1);
/// Converts positions in the row-major order of an array of these sizes to its indices, one tensor for each axis.
std::vector<Tensor> unravel_index(const Tensor& positions, const Shape& sizes);
/// Returns whether each element of x is among those of `test`.
Tensor isin(const Tensor& x, const Tensor& test);
/// Returns a row of the powers x^(n-1) ... x^0 for each element of a vector; x^0 comes first if `increasing`.
Tensor vander(const Tensor& x, std::optional<int64_t> n = std::nullopt, bool increasing = false);

/// Reads x as a vector at positions of any shape.
Tensor take(const Tensor& x, const Tensor& index);
/// As gather, but index and x are broadcast along the other axes. Without an axis x is flattened.
Tensor take_along_dim(const Tensor& x, const Tensor& index, std::optional<int64_t> axis = std::nullopt);
/// Returns a copy of x with `value` in the slices `index` along axis.
Tensor index_fill(const Tensor& x, int64_t axis, const Tensor& index, const Scalar& value);
/// Returns a copy of x with slice i of source written to slice index[i].
Tensor index_copy(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source);
/// Returns a copy of x whose elements with a true mask are source's first elements, in order.
Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source);
/// Combines the values of source at index along axis, with those of x if include_self. Its time grows with x.size(axis)
/// for prod.
Tensor scatter_reduce(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source, ScatterReduce reduce,
                      bool include_self = true);

/// Values that pad() adds: a constant, the mirrored neighbours without the edge, the edge, or those of the other end.
enum class PadMode { constant, reflect, replicate, circular };
/// Pads the last axes; pads are pairs (before, after) from the last axis backwards. `reflect` needs pads smaller than
/// the size, `circular` at most as large; throws ValueError.
Tensor pad(const Tensor& x, const Shape& pads, PadMode mode, const Scalar& value = 0);

}  // namespace levin
