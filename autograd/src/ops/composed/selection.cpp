// Diagonals, and reading and writing at positions.

#include "../../errors.h"
#include "../values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/statistics.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/autograd/trace.h>
#include <levin/kernels/indexing.h>

#include <algorithm>
#include <limits>

namespace levin {

using namespace ops;

// Diagonals

Tensor diagonal(const Tensor& x, int64_t offset, int64_t axis1, int64_t axis2) {
  if (x.dim() < 2) fail<ShapeError>("[diagonal] {} has no diagonal; two axes are needed.", x.sizes());
  const int a = wrap_axis(axis1, x.dim(), "diagonal"), b = wrap_axis(axis2, x.dim(), "diagonal");
  if (a == b) fail<ValueError>("[diagonal] axes {} and {} are the same.", axis1, axis2);
  const int64_t down = std::max<int64_t>(0, -offset), right = std::max<int64_t>(0, offset);
  const int64_t length = std::max<int64_t>(0, std::min(x.size(a) - down, x.size(b) - right));
  Shape sizes, strides;
  for (int i = 0; i < x.dim(); ++i) {
    if (i == a || i == b) continue;
    sizes.push_back(x.size(i));
    strides.push_back(x.strides()[i]);
  }
  sizes.push_back(length);
  strides.push_back(x.strides()[a] + x.strides()[b]);
  const int64_t start = length == 0 ? 0 : down * x.strides()[a] + right * x.strides()[b];
  const Tensor y = make_view(x, sizes, strides, x.storage_offset() + start);
  // Not as_strided, which shares a gradient out among elements of x that share memory.
  if (Context* c = record("diagonal", y, {x}, [](Context& k, const Tensor& g) -> Grads {
        const auto& [by, first, second] = k.get<std::array<int64_t, 3>>();
        const TensorOptions options{.dtype = g.dtype(), .device = g.device()};
        return {diagonal_scatter(zeros(k.input(0).sizes, options), g, by, first, second)};
      }))
    c->set(std::array<int64_t, 3>{offset, a, b});
  return y;
}

Tensor diag_embed(const Tensor& x, int64_t offset, int64_t axis1, int64_t axis2) {
  if (x.dim() == 0) throw ShapeError("[diag_embed] x has no axis to put on a diagonal.");
  const int dims = x.dim() + 1, a = wrap_axis(axis1, dims, "diag_embed"), b = wrap_axis(axis2, dims, "diag_embed");
  if (a == b) fail<ValueError>("[diag_embed] axes {} and {} are the same.", axis1, axis2);
  const int64_t n = x.size(-1), size = n + std::abs(offset);
  // Row i has element i - down in column i - down + right.
  const int64_t down = std::max<int64_t>(0, -offset), right = std::max<int64_t>(0, offset);
  const Tensor rows = unsqueeze(arange(n), 1), columns = arange(size);
  const Tensor on_diagonal = eq(add(rows, right), columns).to(x.device());
  const Tensor spread = mul(unsqueeze(x, -1), on_diagonal.to(x.dtype()));  // (..., n, size)
  const Tensor matrix = pad(where(on_diagonal, spread, 0), {0, 0, down, size - n - down});
  return movedim(matrix, Axes{-2, -1}, a < b ? Axes{a, b} : Axes{a, b});
}

Tensor diag(const Tensor& x, int64_t offset) {
  if (x.dim() != 1 && x.dim() != 2) fail<ShapeError>("[diag] needs a vector or a matrix, x is {}.", x.sizes());
  return x.dim() == 1 ? diag_embed(x, offset) : clone(diagonal(x, offset));
}
Tensor diagflat(const Tensor& x, int64_t offset) { return diag_embed(ravel(x), offset); }
Tensor trace(const Tensor& x) {
  if (x.dim() != 2) fail<ShapeError>("[trace] needs a matrix, x is {}.", x.sizes());
  return sum(diagonal(x));
}

Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset) {
  return transpose(nonzero(tril(ones({rows, columns}), offset)), 0, 1).contiguous();
}
Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset) {
  return transpose(nonzero(triu(ones({rows, columns}), offset)), 0, 1).contiguous();
}

namespace {

/// Returns a copy of x, recorded, with `source` written to a part of it.
template <class Part>
Tensor with_part(const char* op, const Tensor& x, const Tensor& source, const Part& part) {
  const Tensor y = clone(x), place = part(y);
  if (place.sizes() != source.sizes())
    fail<ShapeError>("[{}] source is {}, but the part of x has the sizes {}.", op, source.sizes(), place.sizes());
  place.copy_(source);
  return y;
}

}  // namespace

Tensor select_scatter(const Tensor& x, const Tensor& source, int64_t axis, int64_t index) {
  return with_part("select_scatter", x, source, [&](const Tensor& y) { return select(y, axis, index); });
}
Tensor slice_scatter(const Tensor& x, const Tensor& source, int64_t axis, const Slice& range) {
  return with_part("slice_scatter", x, source, [&](const Tensor& y) { return slice(y, axis, range); });
}
Tensor diagonal_scatter(const Tensor& x, const Tensor& source, int64_t offset, int64_t axis1, int64_t axis2) {
  return with_part("diagonal_scatter", x, source, [&](const Tensor& y) { return diagonal(y, offset, axis1, axis2); });
}

std::vector<Tensor> unravel_index(const Tensor& positions, const Shape& sizes) {
  Tensor rest = as_int64("unravel_index", {"positions", positions});
  if (rest.numel() > 0 && (amin(rest).item<int64_t>() < 0 || amax(rest).item<int64_t>() >= sizes.numel()))
    fail<IndexError>("[unravel_index] a position is outside of {} elements.", sizes.numel());
  std::vector<Tensor> indices(static_cast<std::size_t>(sizes.size()));
  for (int a = sizes.size() - 1; a >= 0; --a) {
    indices[static_cast<std::size_t>(a)] = remainder(rest, sizes[a]);
    rest = floor_divide(rest, sizes[a]);
  }
  return indices;
}

Tensor isin(const Tensor& x, const Tensor& test) {
  constexpr int64_t few = 16;  // elements that are compared one by one faster than they are sorted and searched
  const Tensor elements = ravel(test.detach());
  if (elements.numel() <= few || x.is_complex() || test.is_complex())
    return any(eq(unsqueeze(x, -1), elements), -1);
  const Tensor sorted = sort(elements).values, place = clamp_max(searchsorted(sorted, x), elements.numel() - 1);
  return eq(x, take(sorted, place));
}

Tensor vander(const Tensor& x, std::optional<int64_t> n, bool increasing) {
  if (x.dim() != 1) fail<ShapeError>("[vander] needs a vector, x is {}.", x.sizes());
  const int64_t columns = n.value_or(x.size(0));
  if (columns < 0) fail<ValueError>("[vander] n is {}. Give 0 or more.", columns);
  const Tensor exponents = arange(columns, {.device = x.device()});
  const Tensor powers = pow(unsqueeze(x, 1), increasing ? exponents : flip(exponents, 0));
  return powers;
}

// Selecting and writing

namespace {

/// Returns `index` with its positions counted from the front of `size` elements.
Tensor from_front(const char* op, const Tensor& index, int64_t size) {
  const Tensor i = as_int64(op, {"index", index});
  return where(lt(i, 0), add(i, size), i);
}

}  // namespace

Tensor take(const Tensor& x, const Tensor& index) {
  const Tensor i = from_front("take", index, x.numel());
  return reshape(index_select(ravel(x), 0, ravel(i)), index.sizes());
}

Tensor take_along_dim(const Tensor& x, const Tensor& index, std::optional<int64_t> axis) {
  if (!axis) return gather(ravel(x), 0, ravel(from_front("take_along_dim", index, x.numel())));
  if (x.dim() != index.dim())
    fail<ShapeError>("[take_along_dim] index is {}, and x of {} has another number of axes.", index.sizes(), x.sizes());
  const int along = wrap_axis(*axis, x.dim(), "take_along_dim");
  Shape of_x = x.sizes(), of_index = index.sizes();
  of_x[along] = of_index[along] = 1;
  const Shape common = broadcast_shapes(of_x, of_index, "take_along_dim");
  of_x = of_index = common;
  of_x[along] = x.size(along);
  of_index[along] = index.size(along);
  const Tensor i = from_front("take_along_dim", index, x.size(along));
  return gather(expand(x, of_x), along, contiguous(expand(i, of_index)));
}

namespace {

/// Expands the vector of positions along an axis of `sizes`.
Tensor expanded_index(const char* op, const Tensor& index, const Shape& sizes, int along, int64_t limit) {
  const Tensor i = from_front(op, index, limit);
  if (i.dim() > 1) fail<ShapeError>("[{}] index is {}, expected is a vector.", op, i.sizes());
  Shape whole = sizes;
  whole[along] = i.numel();
  return contiguous(expand(along_axis(i, along, sizes.size()), whole));
}

}  // namespace

Tensor index_fill(const Tensor& x, int64_t axis, const Tensor& index, const Scalar& value) {
  const int along = wrap_axis(axis, x.dim(), "index_fill");
  const Tensor i = expanded_index("index_fill", index, x.sizes(), along, x.size(along));
  return scatter(x, along, i, full(i.sizes(), value, like(x)));
}

Tensor index_copy(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source) {
  const int along = wrap_axis(axis, x.dim(), "index_copy");
  const Tensor i = expanded_index("index_copy", index, x.sizes(), along, x.size(along));
  if (source.sizes() != i.sizes())
    fail<ShapeError>("[index_copy] source is {}, but {} positions along axis {} of {} need {}.", source.sizes(),
                     index.numel(), axis, x.sizes(), i.sizes());
  return scatter(x, along, i, source);
}

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source) {
  const Shape sizes = broadcast_shapes(x.sizes(), mask.sizes(), "masked_scatter");
  const Tensor chosen = contiguous(expand(mask, sizes)), flat = ravel(chosen).to(kInt64);
  const int64_t count = sum(flat).item<int64_t>();
  if (count > source.numel())
    fail<ShapeError>("[masked_scatter] the mask selects {} elements, and source has {}.", count, source.numel());
  if (count == 0) return clone(expand(x, sizes));
  const Tensor order = reshape(clamp(sub(cumsum(flat, 0), 1), 0), sizes);
  return where(chosen, take(source, order), expand(x, sizes));
}

namespace {

/// Multiplies the values of each place by a masked product over all of the source's slices along the axis.
Tensor products_by_place(const Tensor& x, int along, const Tensor& index, const Tensor& source, bool include_self) {
  const int64_t places = x.size(along);
  std::vector<Tensor> slices;
  for (int64_t p = 0; p < places; ++p) {
    const Tensor here = eq(index, p), hit = any(here, along, true);
    Tensor value = prod(where(here, source, 1), along, true), own = narrow(x, along, p, 1);
    for (int axis = 0; axis < x.dim(); ++axis)
      if (axis != along) own = narrow(own, axis, 0, index.size(axis));
    if (include_self) value = mul(value, own);
    slices.push_back(where(hit, value, own));
  }
  Shape sizes = index.sizes();
  sizes[along] = places;
  const Tensor places_index =
      expanded_index("scatter_reduce", arange(places).to(x.device()), sizes, along, places);
  return slices.empty() ? clone(x) : scatter(x, along, places_index, cat(slices, along));
}

/// Returns x with the largest (smallest) value of each place: of values written in their order the last one stays.
Tensor extremes_by_place(const Tensor& x, int along, const Tensor& index, const Tensor& source, bool largest,
                         bool include_self) {
  no_grad guard;
  const auto& kernel = largest ? kernels::scatter_max : kernels::scatter_min;
  bool inside = index.dim() == x.dim() && source.dtype() == x.dtype() && source.device() == x.device();
  for (int axis = 0; inside && axis < x.dim(); ++axis) inside = axis == along || index.size(axis) <= x.size(axis);
  if (inside && kernel.has(x.device().type) && x.dtype() != kBool && !x.is_complex() && !tracing()) {
    // Without x itself any value of a place is the first one there.
    const Tensor y = dense(include_self ? clone(x) : scatter(x, along, index, source));
    launch(kernel, x.device(), {y.tensor_view(), dense(source).tensor_view(), dense(index).tensor_view(), along});
    return y;
  }
  // The smallest of floats is the largest of their negatives, so that NaN is the last in order for both.
  const bool negated = !largest && x.is_floating();
  const ValuesIndices sorted = sort(negated ? neg(source) : source, along, !largest && !negated);
  const Tensor last = scatter(negated ? neg(x) : x, along, gather(index, along, sorted.indices), sorted.values);
  const Tensor value = negated ? neg(last) : last;
  if (!include_self) return value;
  return largest ? maximum(value, x) : minimum(value, x);
}

struct ExtremesByPlace {
  int along;
  bool include_self;
};

/// As PyTorch, all values that equal a place's extreme share its gradient.
Grads gradients_of_extremes(Context& k, const Tensor& g) {
  const Tensor x = k.saved(0), source = k.saved(1), index = k.saved(2), y = k.saved(3).detach();
  const auto [along, include_self] = k.get<ExtremesByPlace>();
  const auto equal_to = [](const Tensor& a, const Tensor& b) {
    return to(logical_or(eq(a, b), logical_and(isnan(a), isnan(b))), b.dtype());
  };
  const Tensor chosen = equal_to(source.detach(), gather(y, along, index));
  const Tensor hits = scatter_add(zeros_like(y), along, index, ones_like(chosen));
  const Tensor untouched = to(eq(hits, 0), y.dtype());
  const Tensor own = include_self ? equal_to(x.detach(), y) : untouched;
  const Tensor share = div(g, clamp(scatter_add(own, along, index, chosen), 1));
  return {k.needs(0) ? mul(share, own) : Tensor(), k.needs(1) ? mul(gather(share, along, index), chosen) : Tensor()};
}

Tensor extreme_by_place(const Tensor& x, int along, const Tensor& index, const Tensor& source, bool largest,
                        bool include_self) {
  const Tensor y = extremes_by_place(x, along, index, source, largest, include_self);
  if (!x.is_floating()) return y;
  if (Context* c = record("scatter_extreme", y, {x, source}, gradients_of_extremes))
    c->save(x, source, index).save_output(y).set(ExtremesByPlace{along, include_self});
  return y;
}

}  // namespace

const Tensor& embedding_renorm_(const Tensor& weight, const Tensor& index, double max_norm, double norm_type) {
  if (!(max_norm > 0)) fail<ValueError>("[embedding_renorm_] max_norm is {}. Give a positive number.", max_norm);
  no_grad guard;
  const Tensor rows = ravel(as_int64("embedding_renorm_", {"index", index}));
  const Tensor taken = index_select(weight, 0, rows), size = norm(taken, norm_type, 1, true);
  const Tensor factor = where(gt(size, max_norm), rdiv(add(size, 1e-7), max_norm), 1.0);
  // Equal rows get equal values.
  return weight.copy_(index_put(weight, {rows}, mul(taken, factor)));
}

Tensor scatter(const Tensor& x, int64_t axis, const Tensor& index, const Scalar& value) {
  return scatter(x, axis, index, full(index.sizes(), value, like(x)));
}

Tensor scatter_reduce(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source, ScatterReduce reduce,
                      bool include_self) {
  const int along = wrap_axis(axis, x.dim(), "scatter_reduce");
  const Tensor places = as_int64("scatter_reduce", {"index", index});
  Tensor values = source;
  for (int i = 0; i < source.dim() && i < places.dim(); ++i)
    if (places.size(i) < source.size(i)) values = narrow(values, i, 0, places.size(i));
  if (values.sizes() != places.sizes())
    fail<ShapeError>("[scatter_reduce] source {} does not cover index {}.", source.sizes(), index.sizes());
  if (reduce == ScatterReduce::prod) return products_by_place(x, along, places, values, include_self);
  if (reduce == ScatterReduce::amax || reduce == ScatterReduce::amin)
    return extreme_by_place(x, along, places, values, reduce == ScatterReduce::amax, include_self);
  if (reduce == ScatterReduce::sum && include_self) return scatter_add(x, along, places, values);
  const Tensor ones_of_source = ones(places.sizes(), like(x));
  const Tensor hits = scatter_add(zeros(x.sizes(), like(x)), along, places, ones_of_source);
  const Tensor base = include_self ? x : where(gt(hits, 0), 0, x);
  const Tensor total = scatter_add(base, along, places, values);
  if (reduce == ScatterReduce::sum) return total;
  const Tensor count = clamp(include_self ? add(hits, 1) : hits, 1);
  return x.is_floating() ? div(total, count) : div(total, count, RoundingMode::floor);
}

}  // namespace levin
