#pragma once
// Joining, indexing and sorting. Tensors of positions are int64 or int32.

#include <levin/autograd/ops/reduce.h>
#include <levin/core/tensor.h>

namespace levin {

/// Joins tensors along an axis; all other sizes are equal, and the result has their promoted type. concat is the same.
/// Throws ValueError for no tensors, ShapeError, and DeviceError.
Tensor cat(std::span<const Tensor> tensors, int64_t axis = 0);
Tensor cat(std::initializer_list<Tensor> tensors, int64_t axis = 0);
inline Tensor concat(std::span<const Tensor> tensors, int64_t axis = 0) { return cat(tensors, axis); }
inline Tensor concat(std::initializer_list<Tensor> tensors, int64_t axis = 0) { return cat(tensors, axis); }
/// Joins tensors of equal sizes along a new axis.
Tensor stack(std::span<const Tensor> tensors, int64_t axis = 0);
Tensor stack(std::initializer_list<Tensor> tensors, int64_t axis = 0);
/// Computes out[i][j] = x[index[i][j]][j] for axis 0, and so on; index is at most as large as x along the other axes.
Tensor gather(const Tensor& x, int64_t axis, const Tensor& index);
/// Returns a copy of x to which source is added at index along axis; repeated positions are summed in a fixed order.
Tensor scatter_add(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source);
/// Returns a copy of x with source's values written at index along axis; at a repeated position the last write wins.
Tensor scatter(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source);
Tensor scatter(const Tensor& x, int64_t axis, const Tensor& index, const Scalar& value);
/// Returns the slices along axis selected by a one-dimensional index, in its order.
Tensor index_select(const Tensor& x, int64_t axis, const Tensor& index);
/// Returns a copy of x in which slice i of source is added to slice index[i] along axis, in a fixed order.
Tensor index_add(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source);
/// Reads as Python's x[...] (see Tensor::index).
Tensor index(const Tensor& x, std::span<const Index> indices);
/// Returns a copy of x in which `values` (of x's dtype; they broadcast) are written at x[indices], or added to it. Of
/// several values for one place the last one stays. Throws what Tensor::index does, and ShapeError and DTypeError for
/// values that do not fit.
Tensor index_put(const Tensor& x, std::span<const Index> indices, const Tensor& values,
                 const IndexPutOptions& options = {});
Tensor index_put(const Tensor& x, std::initializer_list<Index> indices, const Tensor& values,
                 const IndexPutOptions& options = {});
/// Returns the elements where mask is true, one-dimensional.
Tensor masked_select(const Tensor& x, const Tensor& mask);
/// Returns the indices of the nonzero elements, (n, dim) int64.
Tensor nonzero(const Tensor& x);

/// Scales the rows of `weight` at `index` whose p-norm is above max_norm down to it, in place and without recording.
const Tensor& embedding_renorm_(const Tensor& weight, const Tensor& index, double max_norm, double norm_type = 2.0);
/// Looks up rows of weight (V, C) by index (...) and returns (..., C). The gradient of row padding_idx is zero. With
/// `sparse` the weight, which has to be a leaf, gets a gradient of the rows that were looked up alone (row_grad() of
/// row_gradient.h), in memory of their size; it cannot be differentiated again.
Tensor embedding(const Tensor& weight, const Tensor& index, std::optional<int64_t> padding_idx = std::nullopt,
                 bool sparse = false);

/// How embedding_bag combines the rows of a bag.
enum class BagMode { sum, mean, max };
/// Options of embedding_bag.
struct EmbeddingBagOptions {
  BagMode mode = BagMode::mean;          ///< combines the rows of a bag
  std::optional<int64_t> padding_idx{};  ///< this row does not take part, and gets no gradient
  std::optional<double> max_norm{};      ///< rows that are looked up are scaled down to this norm, in place
  double norm_type = 2.0;                ///< p of the p-norm that max_norm limits
  bool sparse = false;                   ///< as for embedding
  bool include_last_offset = false;      ///< offsets has one more element, the number of indices
};
/// Combines rows of `weight` (V, C) for each bag of indices: (B, n) to (B, C), or a vector of indices with `offsets`
/// (B), at which the bags begin. With mode sum, `per_sample_weights` of the index's sizes multiply the rows. An empty
/// bag gives zeros. Indices and offsets are int64 or int32. Throws ShapeError for other shapes, IndexError for a
/// padding_idx that is no row, and ValueError for weights or a first offset that do not fit.
Tensor embedding_bag(const Tensor& weight, const Tensor& index, const Tensor& offsets = {},
                     const EmbeddingBagOptions& options = {}, const Tensor& per_sample_weights = {});

/// Sorts along an axis. The sort is stable, and NaN is the largest.
ValuesIndices sort(const Tensor& x, int64_t axis = -1, bool descending = false);
/// Returns the indices of sort.
Tensor argsort(const Tensor& x, int64_t axis = -1, bool descending = false);
/// Returns the k largest (or smallest) elements along an axis, in order; ties are ordered by index.
ValuesIndices topk(const Tensor& x, int64_t k, int64_t axis = -1, bool largest = true);

/// Return the lower (upper) triangle of the last two axes, with zeros elsewhere. The triangle ends at the diagonal of
/// this number, which is included: 0 is the main one, and larger ones lie above it.
Tensor tril(const Tensor& x, int64_t diagonal = 0);
Tensor triu(const Tensor& x, int64_t diagonal = 0);
/// Returns (..., num_classes) int64; num_classes = -1 means the largest class plus one.
Tensor one_hot(const Tensor& index, int64_t num_classes = -1);
/// Reverses the order along axes.
Tensor flip(const Tensor& x, const Axes& axes);
/// Pads with zeros (or `value`); pads are pairs (before, after) from the last axis backwards, as in PyTorch's F.pad.
Tensor pad(const Tensor& x, const Shape& pads, const Scalar& value = 0);

}  // namespace levin
