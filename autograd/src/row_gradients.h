#pragma once
// How row-wise gradients pass through the engine: by a carrier, a tensor of the table's shape without memory of its
// own, whose elements are NaN and whose autograd data holds the rows.

#include "autograd_meta.h"

namespace levin {

/// Adds the rows of equal indices, in their order, and sorts by index.
RowGradient coalesced(const Tensor& indices, const Tensor& rows);

/// Returns a carrier for a table of these sizes.
Tensor row_carrier(RowGradient gradient, const Shape& sizes);
/// Returns the rows of a carrier; null for any other tensor, also for a leaf that has a row-wise gradient.
const RowGradient* carried_rows(const Tensor& gradient);

/// Returns the gradient of the whole table; other tensors as they are.
Tensor without_rows(const Tensor& gradient);
/// Adds two gradients of which one is a carrier.
Tensor sum_with_rows(const Tensor& a, const Tensor& b);
/// Adds a carrier to the gradient of a leaf, or a dense gradient to the rows that it has.
void accumulate_rows(const Tensor& leaf, const Tensor& gradient);

}  // namespace levin
