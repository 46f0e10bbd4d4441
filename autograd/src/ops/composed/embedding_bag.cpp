// Bags of embeddings: sums, means and maxima of rows of a table.

#include "../../errors.h"
#include "../values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/statistics.h>
#include <levin/autograd/ops/view.h>

#include <limits>

namespace levin {

namespace {

/// A table and how its rows are combined; `padding` is counted from the front.
struct Table {
  const Tensor& weight;
  const EmbeddingBagOptions& options;
  std::optional<int64_t> padding;
};

/// Returns the number of the bag of each index: bags begin at `offsets`.
Tensor bags_of(const Tensor& index, const Tensor& offsets) {
  return sub(searchsorted(offsets, arange(index.numel()).to(index.device()), true), 1);
}

/// Returns which elements of the index are padding, with a last axis of 1; undefined if there is no padding.
Tensor padding_of(const Table& t, const Tensor& index) {
  return t.padding ? unsqueeze(eq(index, *t.padding), -1) : Tensor();
}

/// Returns the rows of the table times their weights, and 0 for padding, whatever its row contains.
Tensor rows_of(const Table& t, const Tensor& index, const Tensor& padding, const Tensor& weights) {
  Tensor rows = embedding(t.weight, index, t.padding, t.options.sparse);
  if (padding.defined()) rows = masked_fill(rows, padding, 0);
  return weights.defined() ? mul(rows, unsqueeze(weights, -1)) : rows;
}

/// Sums, or averages, the rows of bags of one length: index (B, n), weights of the index's sizes or undefined.
Tensor combined(const Table& t, const Tensor& index, const Tensor& weights) {
  const Tensor padding = padding_of(t, index), sums = sum(rows_of(t, index, padding, weights), {1});
  if (t.options.mode == BagMode::sum) return sums;
  if (padding.defined()) return div(sums, clamp(sum(to(logical_not(padding), sums.dtype()), {1}), 1));
  return index.size(1) > 1 ? div(sums, index.size(1)) : sums;
}

/// Combines the rows of `count` bags: index and bag (n), weights (n) or undefined.
Tensor combined_by_number(const Table& t, const Tensor& index, const Tensor& bag, int64_t count,
                          const Tensor& weights) {
  const Tensor padding = padding_of(t, index), rows = rows_of(t, index, padding, weights);
  const Tensor empty_bags = zeros({count, t.weight.size(1)}, like(rows));
  Tensor taken = ones({index.numel(), 1}, like(rows));
  if (padding.defined()) taken = masked_fill(taken, padding, 0);
  if (t.options.mode == BagMode::max) {
    const Tensor lowest = masked_fill(rows, eq(taken, 0), -std::numeric_limits<double>::infinity());
    const Tensor place = expand(unsqueeze(bag, 1), rows.sizes()).contiguous();
    const Tensor best = scatter_reduce(empty_bags, 0, place, lowest, ScatterReduce::amax, false);
    return masked_fill(best, isneginf(best), 0);
  }
  const Tensor sums = index_add(empty_bags, 0, bag, rows);
  if (t.options.mode == BagMode::sum) return sums;
  return div(sums, clamp(index_add(zeros({count, 1}, like(rows)), 0, bag, taken), 1));
}

}  // namespace

Tensor embedding_bag(const Tensor& weight, const Tensor& index, const Tensor& offsets, const EmbeddingBagOptions& o,
                     const Tensor& per_sample_weights) {
  if (weight.dim() != 2)
    fail<ShapeError>("[embedding_bag] weight is {}; it needs two dimensions (rows, columns).", weight.sizes());
  if (index.dim() != 2 && !(index.dim() == 1 && offsets.defined()))
    fail<ShapeError>("[embedding_bag] the index is {}, expected is (B, n), or a vector with offsets.", index.sizes());
  if (per_sample_weights.defined() && (o.mode != BagMode::sum || per_sample_weights.sizes() != index.sizes()))
    throw ValueError("[embedding_bag] per_sample_weights need mode sum and the sizes of the index.");
  Table t{weight, o, o.padding_idx};
  if (t.padding && *t.padding < 0) *t.padding += weight.size(0);
  if (t.padding && (*t.padding < 0 || *t.padding >= weight.size(0)))
    fail<IndexError>("[embedding_bag] padding_idx {} is outside of {} rows.", *o.padding_idx, weight.size(0));
  if (o.max_norm) embedding_renorm_(weight, index, *o.max_norm, o.norm_type);
  if (index.dim() == 2) {
    if (o.mode != BagMode::max) return combined(t, index, per_sample_weights);
    const Tensor bag = repeat_interleave(arange(index.size(0)), index.size(1)).to(index.device());
    return combined_by_number(t, ravel(index), bag, index.size(0), Tensor());
  }
  const Tensor starts = o.include_last_offset ? narrow(offsets, 0, 0, offsets.numel() - 1) : offsets;
  if (starts.numel() > 0 && starts[0].item<int64_t>() != 0)
    fail<ValueError>("[embedding_bag] the first offset is {}; the first bag must begin at 0.",
                     starts[0].item<int64_t>());
  return combined_by_number(t, index, bags_of(index, starts), starts.numel(), per_sample_weights);
}

}  // namespace levin
