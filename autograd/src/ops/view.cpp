// Views and their gradients.

#include "../errors.h"
#include "index_expression.h"
#include "region.h"
#include "values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/autograd/trace.h>

#include <algorithm>

namespace levin {

using ops::Region;

namespace {

Grads back_to_input_shape(Context& c, const Tensor& g) { return {reshape(g, c.input(0).sizes)}; }

/// Returns contiguous zeros of shape `sizes` with g in the region: the gradient of selecting the region, no two of
/// whose elements coincide.
Tensor embed(const Tensor& g, const Shape& sizes, const Region& region) {
  Tensor y;
  {
    no_grad guard;
    y = zeros(sizes, like(g));
    // If there are no elements nothing is written: an empty view of an expanded tensor would be refused.
    if (g.numel() > 0) alias(y, region.sizes, region.strides, region.offset).copy_(g);
  }
  if (Context* c = record("embed", y, {g}, [](Context& k, const Tensor& gg) -> Grads {
        const auto& r = k.get<Region>();
        const Tensor whole = contiguous(gg);
        return {as_strided(whole, r.sizes, r.strides, whole.storage_offset() + r.offset)};
      }))
    c->set(region);
  return y;
}

/// Returns contiguous memory of `span` elements with g at the positions of the region; elements that coincide are
/// summed in a fixed order.
Tensor add_up(const Tensor& g, const Region& region, int64_t span) {
  if (!region.may_overlap()) return embed(g, {span}, region);
  const Tensor places = as_strided(arange(span), region.sizes, region.strides, region.offset);
  return index_add(zeros({span}, like(g)), 0, reshape(contiguous(places), {-1}).to(g.device()), reshape(g, {-1}));
}

/// As in PyTorch, gradients are summed at the positions that were read, and elements of the input that share memory get
/// equal shares of the sum.
Grads as_strided_gradient(Context& k, const Tensor& g) {
  const auto& [in, out] = k.get<std::pair<Region, Region>>();
  const int64_t span = std::max(in.end(), out.end());
  Tensor memory = add_up(g, out, span);
  if (in.may_overlap()) {
    const DType t = real_type_of(ops::statistics_type(g));
    const Tensor ones_of_x = ones(in.sizes, {.dtype = t, .device = g.device()});
    memory = div(memory, clamp(add_up(ones_of_x, in, span), 1.0));
  }
  return {as_strided(memory, in.sizes, in.strides, in.offset)};
}

/// Returns the view of x with `strides` and `offset` in x's memory; `region` describes it in a contiguous tensor of x's
/// shape.
Tensor take_region(const char* name, const Tensor& x, const Shape& sizes, const Shape& strides, int64_t offset,
                   const Region& region) {
  Tensor y = make_view(x, sizes, strides, offset);
  if (Context* c = record(name, y, {x}, [](Context& k, const Tensor& g) -> Grads {
        return {embed(g, k.input(0).sizes, k.get<Region>())};
      }))
    c->set(region);
  return y;
}

/// Collects the effect of a basic index, both in x's memory and in a contiguous tensor of its shape.
struct IndexPlan {
  explicit IndexPlan(const Tensor& x)
      : in_sizes(x.sizes()),
        in_strides(x.strides()),
        dense(contiguous_strides(x.sizes())),
        offset(x.storage_offset()) {
    if (tracing()) [[unlikely]] taken = std::make_unique<std::vector<int64_t>>();
  }

  void keep(int axis) { take(axis, 0, in_sizes[axis], 1); }
  void take(int axis, int64_t start, int64_t length, int64_t step) {
    if (taken) [[unlikely]] taken->insert(taken->end(), {start, length, step, 0});
    sizes.push_back(length);
    strides.push_back(in_strides[axis] * step);
    offset += start * in_strides[axis];
    region_strides.push_back(dense[axis] * step);
    region_offset += start * dense[axis];
  }
  void pick(int axis, int64_t i) {
    if (taken) [[unlikely]] taken->insert(taken->end(), {i, 1, 1, 1});
    offset += i * in_strides[axis];
    region_offset += i * dense[axis];
  }
  void add_axis() {
    sizes.push_back(1);
    strides.push_back(1);
    region_strides.push_back(1);
  }
  Tensor apply(const char* name, const Tensor& x) const {
    Tensor y = take_region(name, x, sizes, strides, offset, {sizes, region_strides, region_offset});
    if (taken) [[unlikely]] trace_operation("slice", {x}, {y}, {{"taken", std::span<const int64_t>(*taken)}});
    return y;
  }

  Shape in_sizes, in_strides, dense;
  Shape sizes, strides, region_strides;
  int64_t offset, region_offset = 0;
  /// While tracing: start, length and step of each axis of x, and 1 if it was picked, else 0.
  std::unique_ptr<std::vector<int64_t>> taken;
};

int64_t wrap_index(int64_t i, int64_t size, int axis, const char* op) {
  if (i < -size || i >= size) ops::index_out_of_range(op, i, axis, size);
  return i < 0 ? i + size : i;
}

void take_slice(IndexPlan& plan, int axis, const Slice& s) {
  if (s.step <= 0) fail<ValueError>("[slice] step {} is not positive; use flip() to reverse an axis.", s.step);
  const int64_t size = plan.in_sizes[axis];
  const auto bound = [size](std::optional<int64_t> b, int64_t absent) {
    const int64_t v = b.value_or(absent);
    return std::clamp<int64_t>(v < 0 ? v + size : v, 0, size);
  };
  const int64_t start = bound(s.start, 0), stop = bound(s.stop, size);
  plan.take(axis, start, std::max<int64_t>(0, (stop - start + s.step - 1) / s.step), s.step);
}

}  // namespace

Tensor view(const Tensor& x, const Shape& sizes) {
  const Shape target = infer_size(sizes, x.numel(), "view");
  Shape strides;
  if (!view_strides(x.sizes(), x.strides(), target, strides))
    fail<ShapeError>("[view] a tensor of shape {} and strides {} cannot be seen as {} without a copy; use reshape().",
                     x.sizes(), x.strides(), target);
  Tensor y = make_view(x, target, strides, x.storage_offset());
  LEVIN_TRACE("reshape", {x}, {y});
  record("view", y, {x}, back_to_input_shape);
  return y;
}

Tensor reshape(const Tensor& x, const Shape& sizes) {
  const Shape target = infer_size(sizes, x.numel(), "reshape");
  if (target == x.sizes()) return x;
  Shape strides;
  if (!view_strides(x.sizes(), x.strides(), target, strides)) return view(contiguous(x), target);
  Tensor y = make_view(x, target, strides, x.storage_offset());
  LEVIN_TRACE("reshape", {x}, {y});
  record("reshape", y, {x}, back_to_input_shape);
  return y;
}

Tensor flatten(const Tensor& x, int64_t start, int64_t end) {
  const int first = wrap_axis(start, x.dim(), "flatten"), last = wrap_axis(end, x.dim(), "flatten");
  if (first > last) fail<ValueError>("[flatten] start axis {} lies behind end axis {}.", start, end);
  if (x.dim() == 0) return reshape(x, {1});
  Shape target;
  int64_t joined = 1;
  for (int i = 0; i < x.dim(); ++i) {
    if (i < first || i > last) {
      target.push_back(x.sizes()[i]);
    } else {
      joined *= x.sizes()[i];
      if (i == last) target.push_back(joined);
    }
  }
  return reshape(x, target);
}

Tensor permute(const Tensor& x, const Shape& axes) {
  if (axes.size() != x.dim())
    fail<ShapeError>("[permute] {} axes given for a tensor of {} dimensions.", axes.size(), x.dim());
  const Shape order = axes.empty() ? axes : wrap_axes(axes, x.dim(), "permute");
  Shape sizes, strides;
  for (const int64_t a : order) {
    sizes.push_back(x.sizes()[static_cast<int>(a)]);
    strides.push_back(x.strides()[static_cast<int>(a)]);
  }
  Tensor y = make_view(x, sizes, strides, x.storage_offset());
  LEVIN_TRACE("permute", {x}, {y}, {{"axes", order}});
  if (Context* c = record("permute", y, {x}, [](Context& k, const Tensor& g) -> Grads {
        const auto& forward = k.get<Shape>();
        Shape inverse = forward;
        for (int i = 0; i < forward.size(); ++i) inverse[static_cast<int>(forward[i])] = i;
        return {permute(g, inverse)};
      }))
    c->set(order);
  return y;
}

Tensor transpose(const Tensor& x, int64_t a, int64_t b) {
  const int first = wrap_axis(a, x.dim(), "transpose"), second = wrap_axis(b, x.dim(), "transpose");
  if (first == second) return view(x, x.sizes());
  Shape order;
  for (int i = 0; i < x.dim(); ++i) order.push_back(i == first ? second : i == second ? first : i);
  return permute(x, order);
}

Tensor t(const Tensor& x) {
  if (x.dim() > 2)
    fail<ShapeError>("[t] the tensor has {} dimensions, at most 2 are transposed; use transpose(a, b).", x.dim());
  return x.dim() < 2 ? x : transpose(x, 0, 1);
}

Tensor narrow(const Tensor& x, int64_t axis, int64_t start, int64_t length) {
  const int a = wrap_axis(axis, x.dim(), "narrow");
  if (x.dim() == 0) throw ShapeError("[narrow] a 0-dim tensor has no axis to narrow.");
  const int64_t size = x.sizes()[a], first = start < 0 ? start + size : start;
  if (first < 0 || length < 0 || first + length > size)
    fail<IndexError>("[narrow] elements {} to {} lie outside axis {} of size {}.", start, start + length, a, size);
  IndexPlan plan(x);
  for (int i = 0; i < x.dim(); ++i) i == a ? plan.take(i, first, length, 1) : plan.keep(i);
  return plan.apply("narrow", x);
}

Tensor slice(const Tensor& x, int64_t axis, const Slice& s) {
  const int a = wrap_axis(axis, x.dim(), "slice");
  if (x.dim() == 0) throw ShapeError("[slice] a 0-dim tensor has no axis to slice.");
  IndexPlan plan(x);
  for (int i = 0; i < x.dim(); ++i) i == a ? take_slice(plan, i, s) : plan.keep(i);
  return plan.apply("slice", x);
}

Tensor select(const Tensor& x, int64_t axis, int64_t i) {
  if (x.dim() == 0) throw IndexError("[select] a 0-dim tensor cannot be indexed; use item().");
  const int a = wrap_axis(axis, x.dim(), "select");
  IndexPlan plan(x);
  for (int k = 0; k < x.dim(); ++k) k == a ? plan.pick(k, wrap_index(i, x.sizes()[a], a, "select")) : plan.keep(k);
  return plan.apply("select", x);
}

Tensor ops::view_at(const Tensor& x, std::span<const Index> indices) {
  using Kind = Index::Kind;
  const auto count = [&](Kind kind) { return std::ranges::count(indices, kind, &Index::kind); };
  if (count(Kind::ellipsis) > 1) throw IndexError("[index] more than one Ellipsis; use one.");
  const auto consumed = count(Kind::integer) + count(Kind::slice);
  if (consumed > x.dim())
    fail<IndexError>("[index] {} indices for a tensor of {} dimensions, of shape {}; leave some out.", consumed,
                     x.dim(), x.sizes());
  IndexPlan plan(x);
  int axis = 0;
  for (const Index& i : indices) {
    switch (i.kind) {
      case Kind::integer:
        plan.pick(axis, wrap_index(i.integer, x.sizes()[axis], axis, "index"));
        ++axis;
        break;
      case Kind::slice: take_slice(plan, axis, i.slice); ++axis; break;
      case Kind::ellipsis:
        for (auto k = x.dim() - consumed; k > 0; --k) plan.keep(axis++);
        break;
      case Kind::new_axis: plan.add_axis(); break;
      case Kind::boolean:
      case Kind::tensor: break;  // not given
    }
  }
  while (axis < x.dim()) plan.keep(axis++);
  return plan.apply("index", x);
}

Tensor expand(const Tensor& x, const Shape& sizes) {
  Shape target = sizes;
  const int added = target.size() - x.dim();
  for (int i = 0; i < target.size(); ++i)
    if (target[i] == -1) {
      if (i < added)
        fail<ShapeError>("[expand] -1 at axis {}, which the tensor of shape {} does not have.", i, x.sizes());
      target[i] = x.sizes()[i - added];
    }
  Tensor y = make_view(x, target, broadcast_strides(x.sizes(), x.strides(), target, "expand"), x.storage_offset());
  LEVIN_TRACE("expand", {x}, {y});
  record("expand", y, {x}, [](Context&, const Tensor& g) -> Grads { return {g}; });  // the engine sums the gradient
  return y;
}

Tensor squeeze(const Tensor& x) {
  Shape sizes, strides;
  for (int i = 0; i < x.dim(); ++i)
    if (x.sizes()[i] != 1) {
      sizes.push_back(x.sizes()[i]);
      strides.push_back(x.strides()[i]);
    }
  Tensor y = make_view(x, sizes, strides, x.storage_offset());
  LEVIN_TRACE("reshape", {x}, {y});
  record("squeeze", y, {x}, back_to_input_shape);
  return y;
}

Tensor squeeze(const Tensor& x, int64_t axis) {
  const int a = wrap_axis(axis, x.dim(), "squeeze");
  Shape sizes = x.sizes(), strides = x.strides();
  if (x.dim() > 0 && sizes[a] == 1) {
    sizes.erase(a);
    strides.erase(a);
  }
  Tensor y = make_view(x, sizes, strides, x.storage_offset());
  LEVIN_TRACE("squeeze", {x}, {y}, {{"axis", a}});
  record("squeeze", y, {x}, back_to_input_shape);
  return y;
}

Tensor unsqueeze(const Tensor& x, int64_t axis) {
  const int a = wrap_axis(axis, x.dim() + 1, "unsqueeze");
  Shape sizes = x.sizes(), strides = x.strides();
  const int64_t stride = a < x.dim() ? sizes[a] * strides[a] : 1;
  sizes.insert(a, 1);
  strides.insert(a, stride);
  Tensor y = make_view(x, sizes, strides, x.storage_offset());
  LEVIN_TRACE("unsqueeze", {x}, {y}, {{"axis", a}});
  record("unsqueeze", y, {x}, back_to_input_shape);
  return y;
}

Tensor as_strided(const Tensor& x, const Shape& sizes, const Shape& strides, std::optional<int64_t> offset) {
  const int64_t first = offset.value_or(x.storage_offset());
  int64_t last = first;
  if (sizes.size() != strides.size())
    fail<ShapeError>("[as_strided] {} sizes but {} strides.", sizes.size(), strides.size());
  for (int i = 0; i < sizes.size(); ++i) {
    if (strides[i] < 0) fail<ShapeError>("[as_strided] stride {} of axis {} is negative.", strides[i], i);
    last += (sizes[i] - 1) * strides[i];
  }
  if (sizes.numel() > 0 && (first < 0 || (last + 1) * size_of(x.dtype()) > static_cast<int64_t>(x.storage()->bytes())))
    fail<ShapeError>("[as_strided] sizes {}, strides {} and offset {} reach outside the storage of {} bytes.", sizes,
                     strides, first, x.storage()->bytes());
  Tensor y = make_view(x, sizes, strides, first);
  LEVIN_TRACE("as_strided", {x}, {y});
  if (Context* c = record("as_strided", y, {x}, as_strided_gradient))
    c->set(ops::shared_memory(ops::region_of(x), {sizes, strides, first}));
  return y;
}

namespace {

constexpr int64_t kFewPositions = 16;  // of a window, added one after the other

/// Windows overlap if they are longer than their step: the gradients of an element are summed in a fixed order. Unlike
/// the gradient of as_strided, this one is per element of x, whether or not several elements share memory.
Grads unfold_gradient(Context& k, const Tensor& g) {
  const auto& [axis, step] = k.get<std::pair<int, int64_t>>();
  const TensorMeta& in = k.input(0);
  if (in.sizes.empty()) return {sum(g, {0})};  // one element, or none
  const int64_t windows = g.sizes()[axis], size = g.sizes().back();
  if (!grad_enabled() && size <= kFewPositions && !ops::is_16_bit(g)) {
    Tensor dx = zeros(in.sizes, like(g));
    for (int64_t i = 0; i < size; ++i)
      slice(dx, axis, Slice(i, i + (windows - 1) * step + 1, step)).add_(select(g, -1, i));
    return {dx};
  }
  Shape order;
  for (int d = 0; d + 1 < g.dim(); ++d) {
    order.push_back(d);
    if (d == axis) order.push_back(g.dim() - 1);
  }
  const Tensor starts = mul(unsqueeze(arange(windows), 1), step), places = add(starts, arange(size));
  Shape flat = in.sizes;
  flat[axis] = windows * size;
  return {index_add(zeros(in.sizes, like(g)), axis, reshape(places, {windows * size}).to(g.device()),
                    reshape(permute(g, order), flat))};
}

}  // namespace

Tensor unfold(const Tensor& x, int64_t axis, int64_t size, int64_t step) {
  const int a = wrap_axis(axis, x.dim(), "unfold");
  const int64_t length = x.dim() == 0 ? 1 : x.sizes()[a];
  if (size < 0 || size > length || step <= 0)
    fail<ShapeError>("[unfold] windows of {} with step {} do not fit into axis {} of size {}.", size, step, a, length);
  Shape sizes = x.sizes(), strides = x.strides();
  const int64_t stride = x.dim() == 0 ? 1 : strides[a];
  if (x.dim() > 0) {
    sizes[a] = (length - size) / step + 1;
    strides[a] = stride * step;
  }
  sizes.push_back(size);
  strides.push_back(stride);
  Tensor y = make_view(x, sizes, strides, x.storage_offset());
  LEVIN_TRACE("unfold", {x}, {y}, {{"axis", a}, {"size", size}, {"step", step}});
  if (Context* c = record("unfold", y, {x}, unfold_gradient)) c->set(std::pair<int, int64_t>(a, step));
  return y;
}

Tensor detach(const Tensor& x) {
  Tensor y = alias(x, x.sizes(), x.strides(), x.storage_offset());
  y.impl()->inference = x.is_inference();
  LEVIN_TRACE("identity", {x}, {y});
  return y;
}

}  // namespace levin
