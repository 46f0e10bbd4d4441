// Index expressions with masks and positions, read and written. Such tensors are combined into one list of positions in
// the axes that they select from; index_select reads there, scatter and index_add write.

#include "index_expression.h"

#include "../autograd_meta.h"
#include "../errors.h"
#include "autocast.h"
#include "values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/record.h>
#include <levin/autograd/trace.h>
#include <levin/core/capture/host_capture.h>
#include <levin/kernels/indexing.h>

#include <algorithm>

namespace levin {

using namespace ops;

namespace {

/// A tensor of an index expression.
struct Selector {
  Tensor tensor;   ///< bool, or int64
  int axis, axes;  ///< axes of the part that it selects from; a 0-dim mask has a new one of size 1
  int x_axis;      ///< the first of them in x
  bool is_mask() const { return tensor.dtype() == kBool; }
};

struct Selection {
  Tensor part;  ///< x itself, or the view of it that the other indices select
  std::vector<Selector> selectors;
};

bool selects_by_tensor(const Index& i) { return i.kind == Index::Kind::tensor || i.kind == Index::Kind::boolean; }

/// Returns the number of x's axes that an index takes, besides Ellipsis.
int axes_of(const Index& i) {
  using Kind = Index::Kind;
  if (i.kind == Kind::tensor) return i.tensor.dtype() == kBool ? i.tensor.dim() : 1;
  return i.kind == Kind::integer || i.kind == Kind::slice ? 1 : 0;
}

Tensor checked(const Tensor& index, const Tensor& x, int x_axis) {
  if (index.device() != x.device() && index.device() != kCpu)
    fail<DeviceError>("[index] x is on {}, the index on {}. Move it with index.to(x.device()).", x.device(),
                      index.device());
  if (index.dtype() == kInt32 || index.dtype() == kInt64) return index.to(x.device(), kInt64);
  if (index.dtype() != kBool)
    fail<DTypeError>(
        "[index] an index tensor is {}; use int64 or int32 positions, or a bool mask: index.to(kInt64), or compare.",
        index.dtype());
  const Shape &mask = index.sizes(), &sizes = x.sizes();
  if (!std::equal(mask.begin(), mask.end(), sizes.begin() + x_axis))
    fail<ShapeError>(
        "[index] a mask of shape {} does not fit a tensor of shape {} from axis {} on: it needs the sizes of the axes "
        "that it selects from.",
        mask, sizes, x_axis);
  return index.to(x.device());
}

Selection parse(const Tensor& x, std::span<const Index> indices) {
  using Kind = Index::Kind;
  int taken = 0;
  for (const Index& i : indices) taken += axes_of(i);
  if (taken > x.dim())
    fail<IndexError>("[index] the indices take {} axes, but the tensor of shape {} has {}; leave some out.", taken,
                     x.sizes(), x.dim());
  Selection s;
  std::vector<Index> rest;  // the indices without tensors
  int x_axis = 0, axis = 0;
  const auto select = [&](const Tensor& tensor, int axes) {
    s.selectors.push_back({tensor, axis, axes, x_axis});
    axis += axes;
  };
  for (const Index& i : indices) {
    const int axes = axes_of(i);
    if (i.kind == Kind::boolean) {
      rest.push_back(nil);
      select(full({}, i.integer != 0, {.dtype = kBool, .device = x.device()}), 1);
    } else if (i.kind != Kind::tensor) {
      rest.push_back(i);
      const int kept = i.kind == Kind::ellipsis ? x.dim() - taken : i.kind == Kind::integer ? 0 : 1;
      axis += kept;
      if (i.kind == Kind::ellipsis) x_axis += kept;
    } else if (const Tensor t = checked(i.tensor, x, x_axis); t.dtype() != kBool && t.dim() == 0) {
      rest.push_back(t.item<int64_t>());  // a number, as in PyTorch
    } else if (axes == 0) {
      rest.push_back(nil);
      select(t, 1);
    } else {
      rest.insert(rest.end(), static_cast<std::size_t>(axes), Slice());
      select(t, axes);
    }
    x_axis += axes;
  }
  const bool whole = std::ranges::all_of(indices, [](const Index& i) {
    return i.kind == Kind::tensor && i.tensor.dim() > 0;
  });
  s.part = whole ? x : view_at(x, rest);
  return s;
}

/// Where a selection reads and writes: in its part, whose axes are put in order if selectors are not next to each other
/// and seen as lines (outer, n, inner), at positions of n.
struct Places {
  Shape order;      ///< of the part's axes; empty if they stay
  Shape ordered;    ///< sizes in this order
  Shape lines;      ///< outer, n, inner
  Shape sizes;      ///< of the values
  Tensor positions; ///< (count)

  Tensor lines_of(const Tensor& part) const { return reshape(order.empty() ? part : permute(part, order), lines); }
  Tensor part_of(const Tensor& of_lines) const {
    const Tensor y = reshape(of_lines, ordered);
    if (order.empty()) return y;
    Shape inverse = order;
    for (int d = 0; d < order.size(); ++d) inverse[static_cast<int>(order[d])] = d;
    return permute(y, inverse);
  }
  Shape rows() const { return {lines[0], positions.numel(), lines[2]}; }
};

/// Returns positions of 0 or more. On the CPU those out of range are refused here; on other devices and in a capture,
/// where the host cannot see them, they become `outside`, or stay what they are if that is negative, for the kernel to
/// report.
Tensor wrapped(const Selector& s, int64_t size, int64_t outside) {
  const Tensor& i = s.tensor;
  if (i.numel() == 0) return i;
  if (i.device() == kCpu && !detail::host_capture) {
    const auto low = i.min().item<int64_t>(), high = i.max().item<int64_t>();
    if (low < -size || high >= size) index_out_of_range("index", low < -size ? low : high, s.x_axis, size);
    return low < 0 ? where(lt(i, 0), add(i, size), i) : i;
  }
  const Tensor inside = logical_and(ge(i, -size), lt(i, size)), from_start = where(lt(i, 0), add(i, size), i);
  return outside < 0 ? where(inside, from_start, i) : where(inside, from_start, outside);
}

/// Combines lists of positions of the same sizes in one pass; returns an undefined tensor where that is not possible,
/// or if a position is out of range.
Tensor combined_at_once(const Selection& s, int64_t step) {
  const Tensor& first = s.selectors[0].tensor;
  if (!kernels::index_positions.has(first.device().type) || tracing() || detail::host_capture) return {};
  std::vector<kernels::IndexPositionsArgs::Part> parts;
  for (const Selector& selector : s.selectors) {
    const Tensor& index = selector.tensor;
    if (selector.is_mask() || index.sizes() != first.sizes() || !index.is_contiguous()) return {};
    const int64_t size = s.part.sizes()[selector.axis];
    step = size == 0 ? 1 : step / size;
    parts.push_back({index.tensor_view(), size, step});
  }
  Tensor all = empty(first.sizes(), like(first));
  bool inside = false;
  launch(kernels::index_positions, first.device(), {all.tensor_view(), parts, &inside});
  return inside ? all : Tensor();
}

/// Returns the positions that the selectors choose together, counted over all of their axes.
Tensor combined(const Selection& s) {
  int64_t step = 1;
  for (const Selector& selector : s.selectors)
    for (int d = 0; d < selector.axes; ++d) step *= s.part.sizes()[selector.axis + d];
  const int64_t outside = s.selectors.size() == 1 ? -1 : std::max<int64_t>(1, step);
  if (Tensor positions = combined_at_once(s, step); positions.defined()) return positions;
  Tensor all;
  for (const Selector& selector : s.selectors) {
    const auto first = s.part.sizes().begin() + selector.axis;
    const int64_t size = Shape(first, first + selector.axes).numel();
    step = size == 0 ? 1 : step / size;
    Tensor own = selector.is_mask() ? reshape(nonzero(reshape(selector.tensor, {-1})), {-1})
                                    : wrapped(selector, size, outside);
    if (step != 1) own = mul(own, step);
    if (all.defined()) broadcast_shapes(all.sizes(), own.sizes(), "index");
    all = all.defined() ? add(all, own) : own;
  }
  return all;
}

Places places_of(const Selection& s) {
  const no_grad guard;
  Places p;
  const Shape& sizes = s.part.sizes();
  Shape order;
  bool adjacent = true;
  for (const Selector& selector : s.selectors) {
    adjacent = adjacent && (order.empty() || selector.axis == order.back() + 1);
    for (int d = 0; d < selector.axes; ++d) order.push_back(selector.axis + d);
  }
  const int selected = order.size(), first = adjacent ? s.selectors[0].axis : 0;
  for (int d = 0; d < sizes.size(); ++d)
    if (std::ranges::find(order, d) == order.end()) order.push_back(d);
  if (adjacent) {
    p.ordered = sizes;
  } else {
    p.order = order;
    for (const int64_t d : order) p.ordered.push_back(sizes[static_cast<int>(d)]);
  }
  const auto begin = p.ordered.begin(), from = begin + first, to = from + selected;
  p.lines = {Shape(begin, from).numel(), Shape(from, to).numel(), Shape(to, p.ordered.end()).numel()};
  const Tensor positions = combined(s);
  p.sizes = Shape(begin, from);
  for (const int64_t n : positions.sizes()) p.sizes.push_back(n);
  for (auto n = to; n != p.ordered.end(); ++n) p.sizes.push_back(*n);
  p.positions = reshape(positions, {positions.numel()});
  return p;
}

/// Returns the value in the shape of its places; sizes of 1 in front of it are dropped, as in PyTorch.
Tensor fitted(const char* op, const Tensor& value, const Shape& sizes) {
  const Shape& own = value.sizes();
  const int more = std::max(0, own.size() - sizes.size());
  bool fits = std::all_of(own.begin(), own.begin() + more, [](int64_t n) { return n == 1; });
  for (int d = more; fits && d < own.size(); ++d) {
    const int64_t wanted = sizes[sizes.size() - own.size() + d];
    fits = own[d] == 1 || own[d] == wanted;
  }
  if (!fits)
    fail<ShapeError>(
        "[{}] a value of shape {} does not broadcast to the shape {} of its places; reshape it, or index other ones.",
        op, own, sizes);
  return expand(more > 0 ? reshape(value, Shape(own.begin() + more, own.end())) : value, sizes);
}

/// Returns the part with the rows written to its places.
Tensor written(const Tensor& part, const Places& p, const Tensor& rows, const IndexPutOptions& options) {
  const Tensor lines = p.lines_of(part);
  if (options.accumulate) return p.part_of(index_add(lines, 1, p.positions, rows));
  const Tensor at = expand(reshape(p.positions, {1, -1, 1}), rows.sizes());
  return p.part_of(scatter(lines, 1, at, rows));
}

/// Writes into the part's memory without recording. Copies the part if its elements are not in order there.
void write(const Tensor& part, const Places& p, const Tensor& rows, const IndexPutOptions& options) {
  const no_grad guard;
  if (options.accumulate && (is_16_bit(part) || part.dtype() == kBool)) {
    part.copy_(written(part, p, rows, options));
    return;
  }
  const auto apart = [&](const Tensor& t) { return t.shares_storage(part) ? clone(t) : t; };
  const Tensor view = p.lines_of(detach(part)), lines = contiguous(view);
  const Tensor from = dense(apart(rows));
  if (options.accumulate) {
    const Tensor at = apart(dense(p.positions));
    launch(kernels::index_add, part.device(),
           {lines.tensor_view(), from.tensor_view(), at.tensor_view(), p.lines[0], p.lines[1], p.lines[2], -1,
            "index_put_"});
  } else {
    const Tensor at = apart(dense(expand(reshape(p.positions, {1, -1, 1}), p.rows())));
    launch(kernels::scatter, part.device(), {lines.tensor_view(), from.tensor_view(), at.tensor_view(), 1});
  }
  if (lines.shares_storage(part)) end_in_place(part);
  else part.copy_(p.part_of(lines));
}

void check_values(const char* op, const Tensor& x, const Tensor& values) {
  check_same_dtype(op, {{"x", x}, {"values", values}});
  check_same_device(op, {"x", x}, {"values", values});
}

/// Writes values of x's dtype and device.
void put(const Selection& s, const Tensor& values, const IndexPutOptions& options) {
  if (s.selectors.empty()) {
    const Tensor fit = fitted("index_put_", values, s.part.sizes());
    options.accumulate ? s.part.add_(fit) : s.part.copy_(fit);
    return;
  }
  const Places p = places_of(s);
  const Tensor rows = reshape(fitted("index_put_", values, p.sizes), p.rows());
  if (tracing()) [[unlikely]] {
    s.part.copy_(written(s.part, p, rows, options));
    return;
  }
  if (begin_in_place("index_put_", s.part, {rows})) {
    replace_in_place("index_put_", s.part, [&](const Tensor& old) { return written(old, p, rows, options); });
  } else if (rows.numel() > 0) {
    write(s.part, p, rows, options);
  }
}

}  // namespace

Tensor index(const Tensor& x, std::span<const Index> indices) {
  if (std::ranges::none_of(indices, selects_by_tensor)) return view_at(x, indices);
  const Selection s = parse(x, indices);
  if (s.selectors.empty()) return s.part;
  const Places p = places_of(s);
  return reshape(index_select(p.lines_of(s.part), 1, p.positions), p.sizes);
}

Tensor index_put(const Tensor& x, std::span<const Index> indices, const Tensor& values,
                 const IndexPutOptions& options) {
  LEVIN_AUTOCAST(widest, index_put, x, indices, values, options);
  check_values("index_put", x, values);
  if (const Selection s = parse(x, indices); s.part.is_same(x) && !s.selectors.empty()) {
    const Places p = places_of(s);
    return written(x, p, reshape(fitted("index_put", values, p.sizes), p.rows()), options);
  }
  const Tensor y = clone(x);
  return y.index_put_(indices, values, options);
}

Tensor index_put(const Tensor& x, std::initializer_list<Index> indices, const Tensor& values,
                 const IndexPutOptions& options) {
  return index_put(x, std::span<const Index>(indices.begin(), indices.size()), values, options);
}

const Tensor& Tensor::index_put_(std::span<const Index> indices, const Tensor& values,
                                 const IndexPutOptions& options) const {
  check_values("index_put_", *this, values);
  put(parse(*this, indices), values, options);
  return *this;
}

const Tensor& Tensor::index_put_(std::initializer_list<Index> indices, const Tensor& values,
                                 const IndexPutOptions& options) const {
  return index_put_(std::span<const Index>(indices.begin(), indices.size()), values, options);
}

// Assignment to temporaries

namespace {

/// Throws if nothing but x, and the base that x keeps for its history, shares x's memory.
void refuse_lost_write(const Tensor& x) {
  const bool only_handle = x.impl()->use_count() == 1;
  const AutogradMeta* meta = meta_or_null(x);
  const Tensor* base = meta && meta->view ? &meta->view->base : nullptr;
  const bool only_view = !base || base->impl()->use_count() == 1;
  if (only_handle && only_view && x.storage()->use_count() == (base ? 2u : 1u))
    fail<ValueError>(
        "[operator=] the left side, of shape {}, is a temporary that shares its memory with no other tensor, so the "
        "values would be lost; name it first, or index the tensor that is meant: x(index) = value.",
        x.sizes());
}

}  // namespace

Tensor& Tensor::operator=(const Tensor& value) && {
  refuse_lost_write(*this);
  copy_(value.dim() > dim() ? fitted("copy_", value, sizes()) : value);
  return *this;
}

Tensor& Tensor::operator=(const Scalar& value) && {
  refuse_lost_write(*this);
  fill_(value);
  return *this;
}

IndexedTensor::IndexedTensor(const Tensor& x, std::span<const Index> indices)
    : Tensor(x.index(indices)), x_(x), indices_(indices.begin(), indices.end()) {}

IndexedTensor& IndexedTensor::operator=(const Tensor& other) & {
  Tensor::operator=(other);
  x_ = {};
  indices_.clear();
  return *this;
}

void IndexedTensor::operator=(const Tensor& value) && { put(parse(x_, indices_), value.to(x_), {}); }

void IndexedTensor::operator=(const Scalar& value) && {
  const Selection s = parse(x_, indices_);
  if (s.selectors.size() != 1 || !s.selectors[0].is_mask() || s.selectors[0].tensor.dim() == 0)
    return put(s, tensor(value, like(x_)), {});
  const auto& [mask, axis, axes, _] = s.selectors[0];
  Shape sizes = mask.sizes();
  for (int d = axis + axes; d < s.part.dim(); ++d) sizes.push_back(1);
  s.part.masked_fill_(mask.reshape(sizes), value);
}

void IndexedTensor::write_back() { put(parse(x_, indices_), *this, {}); }

}  // namespace levin
