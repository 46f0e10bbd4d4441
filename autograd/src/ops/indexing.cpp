// Indexing operations and their gradients: the transpose of a gather is a scatter-add and vice versa.

#include "../errors.h"
#include "../row_gradients.h"
#include "autocast.h"
#include "elementwise/common.h"
#include "spectral/complex.h"
#include "values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/autograd/trace.h>
#include <levin/kernels/copy.h>
#include <levin/kernels/indexing.h>

#include <fmt/format.h>

namespace levin {

using namespace ops;

namespace {

/// Returns the index as int64.
Tensor checked_index(const char* op, const Tensor& x, const Tensor& index) {
  check_same_device(op, {"x", x}, {"the index", index});
  return as_int64(op, {"index", index});
}

void check_source(const char* op, const Tensor& x, const Tensor& source) {
  check_same_dtype(op, {{"x", x}, {"source", source}});
  check_same_device(op, {"x", x}, {"source", source});
}

Tensor copy_of(const Tensor& t) {
  no_grad guard;
  return t.is_contiguous() ? clone(detach(t)) : dense(t);
}

/// Checks the index sizes. The index may be smaller than `t` along the other axes, and also along `axis` if `along` is
/// set.
void check_lines(const char* op, const char* name, const Tensor& t, const Tensor& index, int axis, bool along) {
  bool fits = t.dim() == index.dim();
  for (int d = 0; fits && d < t.dim(); ++d) fits = index.sizes()[d] <= t.sizes()[d] || (d == axis && !along);
  if (!fits)
    fail<ShapeError>("[{}] index {} does not fit {} {}: it needs as many axes, and may be at most as large{}.", op,
                     index.sizes(), name, t.sizes(),
                     along ? std::string() : fmt::format(" except along axis {}", axis));
}

/// Returns the part of g that the index reaches, in the source's size, with zeros where the index does not reach.
Tensor to_source_size(const Tensor& g, const Shape& sizes) {
  if (g.sizes() == sizes) return g;
  Shape pads;
  for (int d = g.dim() - 1; d >= 0; --d) {
    pads.push_back(0);
    pads.push_back(sizes[d] - g.sizes()[d]);
  }
  return pad(g, pads);
}

}  // namespace

Tensor gather(const Tensor& x, int64_t axis, const Tensor& index) {
  const Tensor at = checked_index("gather", x, index);
  const int a = wrap_axis(axis, x.dim(), "gather");
  check_lines("gather", "x", x, index, a, false);
  Tensor y = empty(index.sizes(), like(x));
  launch(kernels::gather, x.device(), {y.tensor_view(), dense(x).tensor_view(), dense(at).tensor_view(), a});
  LEVIN_TRACE("gather", {x, at}, {y}, {{"axis", a}});
  if (Context* c = record("gather", y, {x}, [](Context& k, const Tensor& g) -> Grads {
        return {scatter_add(zeros(k.input(0).sizes, like(g)), k.get<int>(), k.saved(0), g)};
      }))
    c->save(at).set(a);
  return y;
}

Tensor scatter_add(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source) {
  LEVIN_AUTOCAST(widest, scatter_add, x, axis, index, source);
  const Tensor at = checked_index("scatter_add", x, index);
  check_source("scatter_add", x, source);
  ops::refuse_bool("scatter_add", x.dtype(), "scatter");
  if (is_16_bit(x))  // so that sums are rounded once
    return to(scatter_add(to(x, kFloat32), axis, index, to(source, kFloat32)), x.dtype());
  const int a = wrap_axis(axis, x.dim(), "scatter_add");
  check_lines("scatter_add", "x", x, index, a, false);
  check_lines("scatter_add", "source", source, index, a, true);
  Tensor y = copy_of(x);
  launch(kernels::scatter_add, x.device(), {y.tensor_view(), dense(source).tensor_view(), dense(at).tensor_view(), a});
  LEVIN_TRACE("scatter_add", {x, at, source}, {y}, {{"axis", a}});
  if (Context* c = record("scatter_add", y, {x, source}, [](Context& k, const Tensor& g) -> Grads {
        return {g, k.needs(1) ? to_source_size(gather(g, k.get<int>(), k.saved(0)), k.input(1).sizes) : Tensor()};
      }))
    c->save(at).set(a);
  return y;
}

Tensor scatter(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source) {
  const Tensor at = checked_index("scatter", x, index);
  check_source("scatter", x, source);
  const int a = wrap_axis(axis, x.dim(), "scatter");
  check_lines("scatter", "x", x, index, a, false);
  check_lines("scatter", "source", source, index, a, true);
  Tensor y = copy_of(x);
  launch(kernels::scatter, x.device(), {y.tensor_view(), dense(source).tensor_view(), dense(at).tensor_view(), a});
  LEVIN_TRACE("scatter", {x, at, source}, {y}, {{"axis", a}});
  if (Context* c = record("scatter", y, {x, source}, [](Context& k, const Tensor& g) -> Grads {
        const Tensor where_to = k.saved(0);
        const int along = k.get<int>();
        Tensor dx, ds;
        if (k.needs(0)) dx = scatter(g, along, where_to, zeros(where_to.sizes(), like(g)));
        if (k.needs(1)) {
          // Only the last write to a position has a gradient.
          const Tensor number = reshape(arange(where_to.numel(), {.device = g.device()}), where_to.sizes());
          const Tensor winner = scatter(zeros(g.sizes(), like(number)), along, where_to, number);
          const Tensor lost = ne(gather(winner, along, where_to), number);
          ds = to_source_size(masked_fill(gather(g, along, where_to), lost, 0), k.input(1).sizes);
        }
        return {dx, ds};
      }))
    c->save(at).set(a);
  return y;
}

namespace {

/// Adds source's slices to y, which the caller owns.
void add_slices(const char* op, const Tensor& y, int axis, const Tensor& index, const Tensor& source, int64_t skip) {
  const Around a = around(y.sizes(), axis);
  launch(kernels::index_add, y.device(),
         {y.tensor_view(), dense(source).tensor_view(), dense(index).tensor_view(), a.outer, a.n, a.inner, skip, op});
}

Tensor select_slices(const char* op, const Tensor& x, int axis, const Tensor& index, const Shape& sizes) {
  Tensor y = empty(sizes, like(x));
  const Around a = around(x.sizes(), axis);
  launch(kernels::index_select, x.device(),
         {y.tensor_view(), dense(x).tensor_view(), dense(index).tensor_view(), a.outer, a.n, a.inner, op});
  return y;
}

/// Returns the list of positions as int64.
Tensor checked_list(const char* op, const Tensor& x, const Tensor& index) {
  if (index.dim() != 1 || x.dim() == 0)
    fail<ShapeError>("[{}] x is {}, the index {}: the index needs one dimension and x at least one.", op, x.sizes(),
                     index.sizes());
  return checked_index(op, x, index);
}

/// Adds g's slices to zeros: the gradient of the tensor from which index_select took them.
Tensor added_to_zeros(const Tensor& g, const Shape& sizes, int axis, const Tensor& index) {
  if (is_16_bit(g)) return to(added_to_zeros(to(g, kFloat32), sizes, axis, index), g.dtype());
  const Tensor dx = zeros(sizes, like(g));
  add_slices("index_select", dx, axis, index, g, -1);
  if (Context* c = record("index_select_backward", dx, {g}, [](Context& k, const Tensor& gg) -> Grads {
        return {index_select(gg, k.get<int>(), k.saved(0))};
      }))
    c->save(index).set(axis);
  return dx;
}

}  // namespace

Tensor index_select(const Tensor& x, int64_t axis, const Tensor& index) {
  const Tensor at = checked_list("index_select", x, index);
  const int a = wrap_axis(axis, x.dim(), "index_select");
  if (x.is_complex()) return on_parts(x, [&](const Tensor& parts) { return index_select(parts, a, at); });
  Shape sizes = x.sizes();
  sizes[a] = index.numel();
  Tensor y = select_slices("index_select", x, a, at, sizes);
  LEVIN_TRACE("index_select", {x, at}, {y}, {{"axis", a}});
  if (Context* c = record("index_select", y, {x}, [](Context& k, const Tensor& g) -> Grads {
        return {added_to_zeros(g, k.input(0).sizes, k.get<int>(), k.saved(0))};
      }))
    c->save(at).set(a);
  return y;
}

Tensor index_add(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source) {
  const Tensor at = checked_list("index_add", x, index);
  check_source("index_add", x, source);
  ops::refuse_bool("index_add", x.dtype(), "scatter");
  if (is_16_bit(x)) return to(index_add(to(x, kFloat32), axis, index, to(source, kFloat32)), x.dtype());
  const int a = wrap_axis(axis, x.dim(), "index_add");
  if (x.is_complex())
    return on_parts(x, [&](const Tensor& parts) { return index_add(parts, a, at, view_as_real(source)); });
  Shape sizes = x.sizes();
  sizes[a] = index.numel();
  if (source.sizes() != sizes)
    fail<ShapeError>("[index_add] source is {}; {} indices along axis {} of {} need {}.", source.sizes(), index.numel(),
                     a, x.sizes(), sizes);
  Tensor y = copy_of(x);
  add_slices("index_add", y, a, at, source, -1);
  LEVIN_TRACE("index_add", {x, at, source}, {y}, {{"axis", a}});
  if (Context* c = record("index_add", y, {x, source}, [](Context& k, const Tensor& g) -> Grads {
        return {g, k.needs(1) ? index_select(g, k.get<int>(), k.saved(0)) : Tensor()};
      }))
    c->save(at).set(a);
  return y;
}

namespace {

struct EmbeddingOptions {
  int64_t rows = 0;
  int64_t padding = -1;  ///< row without gradient; -1 for none
  bool sparse = false;
};

/// Returns the gradient of the rows that were looked up, as a carrier.
Tensor embedding_rows(const Tensor& g, const Tensor& index, const EmbeddingOptions& o) {
  if (grad_enabled())
    throw GradError(
        "[embedding] the row-wise gradient of sparse = true cannot be differentiated again (create_graph); use "
        "sparse = false.");
  Tensor at = reshape(index, {-1}), rows = reshape(g, {at.numel(), g.sizes().back()});
  if (o.padding >= 0) {
    const Tensor kept = reshape(nonzero(ne(at, o.padding)), {-1});
    at = index_select(at, 0, kept);
    rows = index_select(rows, 0, kept);
  }
  return row_carrier(coalesced(at, rows), {o.rows, g.sizes().back()});
}

/// Computes the gradient of the weight (V, C): g (..., C) summed by index (...).
Tensor embedding_gradient(const Tensor& g, const Tensor& index, const EmbeddingOptions& o) {
  if (is_16_bit(g)) return to(embedding_gradient(to(g, kFloat32), index, o), g.dtype());
  Tensor dw = zeros({o.rows, g.sizes().back()}, like(g));
  add_slices("embedding", dw, 0, index, g, o.padding);
  if (Context* c = record("embedding_backward", dw, {g}, [](Context& k, const Tensor& gg) -> Grads {
        const auto& options = k.get<EmbeddingOptions>();
        const Tensor rows = embedding(gg, k.saved(0));
        if (options.padding < 0) return {rows};
        return {masked_fill(rows, unsqueeze(eq(k.saved(0), options.padding), -1), 0)};
      }))
    c->save(index).set(o);
  return dw;
}

}  // namespace

Tensor embedding(const Tensor& weight, const Tensor& index, std::optional<int64_t> padding_idx, bool sparse) {
  const Tensor at = checked_index("embedding", weight, index);
  if (weight.dim() != 2)
    fail<ShapeError>("[embedding] weight is {}; it needs two dimensions (rows, columns).", weight.sizes());
  if (sparse && would_record({weight}) && !weight.is_leaf())
    throw GradError(
        "[embedding] the weight was computed from other tensors, which the row-wise gradient of sparse = true cannot "
        "reach; use sparse = false.");
  EmbeddingOptions options{weight.sizes()[0], -1, sparse};
  if (padding_idx) {
    if (*padding_idx < -options.rows || *padding_idx >= options.rows)
      fail<IndexError>("[embedding] padding_idx {} is out of range for {} rows.", *padding_idx, options.rows);
    options.padding = *padding_idx < 0 ? *padding_idx + options.rows : *padding_idx;
  }
  Tensor y = select_slices("embedding", weight, 0, at, joined(index.sizes(), {weight.size(1)}));
  LEVIN_TRACE("embedding", {weight, at}, {y});
  if (Context* c = record("embedding", y, {weight}, [](Context& k, const Tensor& g) -> Grads {
        const auto& o = k.get<EmbeddingOptions>();
        return {o.sparse ? embedding_rows(g, k.saved(0), o) : embedding_gradient(g, k.saved(0), o)};
      }))
    c->save(at).set(options);
  return y;
}

namespace {

Tensor nonzero_of(const Tensor& dense_x) {
  const int64_t chunks = (dense_x.numel() + kernels::kNonzeroChunk - 1) / kernels::kNonzeroChunk;
  const TensorOptions int64s{.dtype = kInt64, .device = dense_x.device()};
  Tensor counts = empty({chunks}, int64s);
  launch(kernels::count_nonzero, dense_x.device(), {counts.tensor_view(), dense_x.tensor_view()});
  int64_t total = 0;
  for (const int64_t n : counts.to_vector<int64_t>()) total += n;
  Tensor y = empty({total, dense_x.dim()}, int64s);
  launch(kernels::nonzero, dense_x.device(), {y.tensor_view(), dense_x.tensor_view(), counts.tensor_view()});
  LEVIN_TRACE("nonzero", {dense_x}, {y});
  return y;
}

}  // namespace

Tensor nonzero(const Tensor& x) { return nonzero_of(dense(x)); }

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  if (mask.dtype() != kBool)
    fail<DTypeError>("[masked_select] the mask is {}; bool is needed: compare, or mask.to(kBool).", mask.dtype());
  const Shape sizes = broadcast_shapes(x.sizes(), mask.sizes(), "masked_select");
  const Tensor chosen = dense(reshape(expand(mask, sizes), {sizes.numel()}));
  return index_select(reshape(expand(x, sizes), {sizes.numel()}), 0, reshape(nonzero_of(chosen), {-1}));
}

}  // namespace levin
