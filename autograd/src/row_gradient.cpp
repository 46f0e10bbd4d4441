#include "errors.h"
#include "row_gradients.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/statistics.h>
#include <levin/autograd/ops/view.h>
#include <levin/core/state_dict.h>

#include <limits>

namespace levin {

namespace {

RowGradient joined(const RowGradient& a, const RowGradient& b) {
  return coalesced(cat({a.indices, b.indices}), cat({a.rows, b.rows}));
}

const RowGradient* held_rows(const Tensor& leaf) {
  const AutogradMeta* meta = meta_or_null(leaf);
  return meta ? meta->rows.get() : nullptr;
}

/// Adds rows to a dense gradient in place.
void add_rows(const Tensor& dense, const RowGradient& g) {
  if (g.indices.numel() > 0) dense.index_put_({g.indices}, g.rows, {.accumulate = true});
}

Tensor dense_of(const RowGradient& g, const Shape& sizes) {
  const Tensor whole = zeros(sizes, like(g.rows));
  add_rows(whole, g);
  return whole;
}

}  // namespace

RowGradient coalesced(const Tensor& indices, const Tensor& rows) {
  no_grad guard;
  if (indices.numel() == 0) return {indices, rows};
  const Unique u = unique(indices);
  return {u.values, index_add(zeros({u.values.numel(), rows.size(1)}, like(rows)), 0, u.inverse, rows)};
}

Tensor row_carrier(RowGradient gradient, const Shape& sizes) {
  no_grad guard;
  const Tensor carrier = expand(full({}, std::numeric_limits<double>::quiet_NaN(), like(gradient.rows)), sizes);
  make_meta(carrier).rows = std::make_unique<RowGradient>(std::move(gradient));
  return carrier;
}

const RowGradient* carried_rows(const Tensor& gradient) {
  const AutogradMeta* meta = meta_or_null(gradient);
  return meta && !meta->requires_grad ? meta->rows.get() : nullptr;
}

Tensor without_rows(const Tensor& gradient) {
  no_grad guard;
  const RowGradient* g = carried_rows(gradient);
  return g ? dense_of(*g, gradient.sizes()) : gradient;
}

Tensor sum_with_rows(const Tensor& a, const Tensor& b) {
  no_grad guard;
  const RowGradient *of_a = carried_rows(a), *of_b = carried_rows(b);
  if (of_a && of_b) return row_carrier(joined(*of_a, *of_b), a.sizes());
  const Tensor sum = clone(of_a ? b : a);
  add_rows(sum, of_a ? *of_a : *of_b);
  return sum;
}

void accumulate_rows(const Tensor& leaf, const Tensor& gradient) {
  no_grad guard;
  AutogradMeta& meta = make_meta(leaf);
  if (const RowGradient* added = carried_rows(gradient)) {
    if (meta.grad.defined()) return add_rows(meta.grad, *added);
    meta.rows = std::make_unique<RowGradient>(meta.rows ? joined(*meta.rows, *added) : *added);
    return;
  }
  meta.grad = clone(gradient);
  add_rows(meta.grad, *meta.rows);
  meta.rows.reset();
}

std::optional<RowGradient> row_grad(const Tensor& leaf) {
  const RowGradient* g = held_rows(leaf);
  return g ? std::optional<RowGradient>(*g) : std::nullopt;
}

void set_row_grad(const Tensor& leaf, const RowGradient& g) {
  const bool fits = leaf.dim() == 2 && g.indices.dim() == 1 && g.indices.dtype() == kInt64 && g.rows.dim() == 2 &&
                    g.rows.size(0) == g.indices.size(0) && g.rows.size(1) == leaf.size(1) &&
                    g.rows.dtype() == leaf.dtype() && g.rows.device() == leaf.device() &&
                    g.indices.device() == leaf.device();
  if (!fits)
    fail<ShapeError>(
        "[set_row_grad] the indices are {} {}, the rows {} {}; a table {} {} needs n int64 indices and rows of its "
        "width and type on its device.",
        g.indices.sizes(), g.indices.dtype(), g.rows.sizes(), g.rows.dtype(), leaf.sizes(), leaf.dtype());
  leaf.set_grad({});
  make_meta(leaf).rows = std::make_unique<RowGradient>(g);
}

void densify_grad(const Tensor& leaf) {
  no_grad guard;
  if (const RowGradient* g = held_rows(leaf)) leaf.set_grad(dense_of(*g, leaf.sizes()));
}

Tensor gradient_values(const Tensor& leaf) {
  const RowGradient* g = held_rows(leaf);
  return g ? g->rows : leaf.grad();
}

void require_dense_grad(const char* who, const Parameter& parameter) {
  if (held_rows(parameter))
    fail<GradError>(
        "[{}] the gradient of \"{}\" is row-wise, as embedding() with sparse = true makes it, and {} needs a dense "
        "one; use sparse = false.",
        who, parameter.name, who);
}

}  // namespace levin
