#pragma once
// Row-wise gradients: embedding() with sparse = true gives the weight the gradients of the rows that were looked up, in
// place of a gradient of the whole table.

#include <levin/core/tensor.h>

#include <optional>

namespace levin {

struct Parameter;

/// The gradient of a table (V, D) whose rows are 0 except for those listed.
struct RowGradient {
  Tensor indices;  ///< (n) int64, ascending, each once
  Tensor rows;     ///< (n, D), of the table's type
};

/// Returns the row-wise gradient of a leaf, or nothing if it has none. Several backward passes add up, row by row in a
/// fixed order. Such a leaf has no grad(), which then throws GradError; its set_grad({}) removes the row-wise gradient
/// too. If a backward pass also gives it a dense gradient, both become one dense grad().
std::optional<RowGradient> row_grad(const Tensor& leaf);
/// Replaces the gradient of a table. Throws ShapeError unless the indices are (n) int64 and the rows (n, D) of its
/// type; the indices have to be ascending, each once.
void set_row_grad(const Tensor& leaf, const RowGradient& gradient);
/// Turns a row-wise gradient, if there is one, into a dense grad().
void densify_grad(const Tensor& leaf);

/// Returns grad(), or the rows of a row-wise gradient: for functions that scale, clip or measure the elements, and
/// leave those that are 0 as they are. Undefined if there is no gradient.
Tensor gradient_values(const Tensor& leaf);
/// Throws GradError if the gradient of the parameter is row-wise; `who` (as "ddp") cannot use it.
void require_dense_grad(const char* who, const Parameter& parameter);

}  // namespace levin
