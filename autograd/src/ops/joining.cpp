// Concatenation, splitting, flipping, padding and triangles.

#include "../errors.h"
#include "elementwise/common.h"
#include "layout.h"
#include "spectral/complex.h"
#include "values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/autograd/trace.h>
#include <levin/kernels/copy.h>
#include <levin/kernels/creation.h>
#include <levin/kernels/indexing.h>

namespace levin {

using namespace ops;

namespace {

/// PyTorch allows tensors of shape (0,) in a list of any shapes.
bool is_plain_empty(const Tensor& t) { return t.dim() == 1 && t.numel() == 0; }

/// Shape and type of the concatenated tensor; throws if the inputs do not match.
struct CatPlan {
  Shape sizes;
  DType dtype;
  int axis;
};

CatPlan plan_cat(std::span<const Tensor> tensors, int64_t axis) {
  if (tensors.empty()) throw ValueError("[cat] the list of tensors is empty; give one at least.");
  std::size_t first = 0;
  while (first + 1 < tensors.size() && is_plain_empty(tensors[first])) ++first;
  const Tensor& model = tensors[first];
  if (model.dim() == 0) throw ShapeError("[cat] tensors without dimensions cannot be joined; use stack().");
  CatPlan plan{model.sizes(), tensors[0].dtype(), wrap_axis(axis, model.dim(), "cat")};
  plan.sizes[plan.axis] = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    plan.dtype = promote_types(plan.dtype, t.dtype());
    if (t.device() != model.device())
      fail<DeviceError>("[cat] tensor {} is on {}, tensor {} on {}. Move one with x.to(device).", i, t.device(), first,
                        model.device());
    if (is_plain_empty(t) && model.dim() != 1) continue;
    bool fits = t.dim() == model.dim();
    for (int d = 0; fits && d < t.dim(); ++d) fits = d == plan.axis || t.sizes()[d] == model.sizes()[d];
    if (!fits)
      fail<ShapeError>("[cat] tensor {} has shape {}, which differs from {} outside axis {}.", i, t.sizes(),
                       model.sizes(), plan.axis);
    plan.sizes[plan.axis] += t.sizes()[plan.axis];
  }
  return plan;
}

/// Copies the parts directly to their positions; used if parts need another type or are not contiguous.
void copy_parts(const Tensor& y, std::span<const Tensor> tensors, int axis) {
  int64_t start = 0;
  for (const Tensor& t : tensors) {
    if (t.dim() != y.dim()) continue;
    Shape sizes = y.sizes();
    sizes[axis] = t.sizes()[axis];
    const Tensor place = alias(y, sizes, y.strides(), start * y.strides()[axis]);
    launch(kernels::copy, y.device(), {place.tensor_view(), t.tensor_view()});
    start += t.sizes()[axis];
  }
}

Tensor cat_complex(std::span<const Tensor> tensors, const CatPlan& plan) {
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors)
    if (t.dim() == plan.sizes.size()) parts.push_back(view_as_real(to(t, plan.dtype)));
  return as_complex(cat(parts, plan.axis));
}

}  // namespace

Tensor cat(std::span<const Tensor> tensors, int64_t axis) {
  const CatPlan plan = plan_cat(tensors, axis);
  if (is_complex(plan.dtype)) [[unlikely]] return cat_complex(tensors, plan);
  Tensor y = empty(plan.sizes, {.dtype = plan.dtype, .device = tensors[0].device()});
  bool slabs = true;
  for (const Tensor& t : tensors) slabs = slabs && t.is_contiguous() && t.dtype() == plan.dtype;
  if (slabs) {
    std::vector<TensorView> parts;
    parts.reserve(tensors.size());
    for (const Tensor& t : tensors)
      if (t.dim() == y.dim()) parts.push_back(t.tensor_view());
    launch(kernels::cat, y.device(), {y.tensor_view(), parts, plan.axis});
  } else {
    copy_parts(y, tensors, plan.axis);
  }
  LEVIN_TRACE("cat", tensors, std::span(&y, 1), {{"axis", plan.axis}});
  if (Context* c = record("cat", std::span(&y, 1), tensors, [](Context& k, std::span<const Tensor> gs) -> Grads {
        const auto& [along, dims, count] = k.get<std::array<int, 3>>();
        Grads parts;
        int64_t start = 0;
        for (int i = 0; i < count; ++i) {
          const bool there = k.input(i).sizes.size() == dims;
          const int64_t length = there ? k.input(i).sizes[along] : 0;
          parts.push_back(there && k.needs(i) ? narrow(gs[0], along, start, length) : Tensor());
          start += length;
        }
        return parts;
      }))
    c->set(std::array<int, 3>{plan.axis, y.dim(), static_cast<int>(tensors.size())});
  return y;
}

Tensor cat(std::initializer_list<Tensor> tensors, int64_t axis) {
  return cat(std::span<const Tensor>(tensors.begin(), tensors.size()), axis);
}

Tensor stack(std::span<const Tensor> tensors, int64_t axis) {
  if (tensors.empty()) throw ValueError("[stack] the list of tensors is empty; give one at least.");
  const int a = wrap_axis(axis, tensors[0].dim() + 1, "stack");
  std::vector<Tensor> parts;
  parts.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].sizes() != tensors[0].sizes())
      fail<ShapeError>("[stack] tensor {} has shape {}, tensor 0 {}; all shapes must be equal.", i, tensors[i].sizes(),
                       tensors[0].sizes());
    parts.push_back(unsqueeze(tensors[i], a));
  }
  return cat(parts, a);
}

Tensor stack(std::initializer_list<Tensor> tensors, int64_t axis) {
  return stack(std::span<const Tensor>(tensors.begin(), tensors.size()), axis);
}

namespace {

struct SplitPlan {
  int axis;
  Shape strides;  ///< of what was split
};

Grads split_gradient(Context& k, std::span<const Tensor> gs) {
  const auto& [axis, strides] = k.get<SplitPlan>();
  const TensorMeta& in = k.input(0);
  const auto& node = static_cast<const Node&>(k);
  const TensorOptions options{.dtype = in.dtype, .device = in.device};
  if (!grad_enabled())
    if (Tensor whole = joined_in_place(gs, in.sizes, axis); whole.defined()) return {whole};
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < gs.size(); ++i)
    parts.push_back(gs[i].defined() ? gs[i] : zeros(node.outputs[static_cast<int>(i)].sizes, options));
  const bool row_major = is_contiguous(in.sizes, ordered_strides(in.sizes, strides));
  if (row_major || grad_enabled() || is_complex(in.dtype)) return {cat(parts, axis)};
  const Tensor whole = empty_ordered(in.sizes, strides, options);
  copy_parts(whole, parts, axis);
  return {whole};
}

}  // namespace

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t axis) {
  const int a = wrap_axis(axis, x.dim(), "split");
  if (x.dim() == 0) throw ShapeError("[split] a 0-dim tensor has no axis to split.");
  int64_t total = 0;
  for (const int64_t s : sizes) total += s;
  if (total != x.sizes()[a])
    fail<ShapeError>("[split] {} sizes add up to {}, axis {} has {}.", sizes.size(), total, a, x.sizes()[a]);
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const int64_t s : sizes) {
    Shape part = x.sizes();
    part[a] = s;
    parts.push_back(make_view(x, part, x.strides(), x.storage_offset() + start * x.strides()[a]));
    start += s;
  }
  LEVIN_TRACE("split", {&x, 1}, parts, {{"axis", a}, {"sizes", std::span(sizes)}});
  if (Context* c = record("split", parts, {&x, 1}, split_gradient)) c->set(SplitPlan{a, x.strides()});
  return parts;
}

namespace {

struct TriangleOptions {
  int64_t diagonal;
  bool upper;
};

Tensor triangle(const Tensor& x, const TriangleOptions& o) {
  const char* op = o.upper ? "triu" : "tril";
  if (x.dim() < 2) fail<ShapeError>("[{}] x is {}; two dimensions are needed at least.", op, x.sizes());
  Tensor y = empty(x.sizes(), like(x));
  const int64_t rows = x.size(-2), columns = x.size(-1);
  if (x.numel() > 0)
    launch(kernels::triangle, x.device(),
           {y.tensor_view(), dense(x).tensor_view(), x.numel() / (rows * columns), rows, columns, o.diagonal, o.upper});
  LEVIN_TRACE("triangle", {x}, {y}, {{"diagonal", o.diagonal}, {"upper", o.upper}});
  if (Context* c = record(op, y, {x}, [](Context& k, const Tensor& g) -> Grads {
        return {triangle(g, k.get<TriangleOptions>())};
      }))
    c->set(o);
  return y;
}

}  // namespace

Tensor tril(const Tensor& x, int64_t diagonal) { return triangle(x, {diagonal, false}); }
Tensor triu(const Tensor& x, int64_t diagonal) { return triangle(x, {diagonal, true}); }

Tensor one_hot(const Tensor& index, int64_t num_classes) {
  if (index.dtype() != kInt64) return one_hot(as_int64("one_hot", {"index", index}), num_classes);
  if (num_classes < -1)
    fail<ValueError>("[one_hot] {} classes make no sense; give 1 or more, or -1 for the largest index plus one.",
                     num_classes);
  if (num_classes <= 0 && index.numel() == 0)
    throw ValueError("[one_hot] the index is empty, so the number of classes has to be given.");
  const int64_t classes = num_classes == -1 ? amax(index).item<int64_t>() + 1 : num_classes;
  const Shape sizes = joined(index.sizes(), {std::max<int64_t>(classes, 0)});
  Tensor y = empty(sizes, like(index));
  launch(kernels::one_hot, index.device(), {y.tensor_view(), dense(index).tensor_view(), sizes.back()});
  LEVIN_TRACE("one_hot", {index}, {y}, {{"classes", sizes.back()}});
  return y;
}

Tensor flip(const Tensor& x, const Axes& axes) {
  const Shape wrapped = axes.empty() ? Shape{} : wrap_axes(axes, x.dim(), "flip");
  if (x.is_complex()) return on_parts(x, [&](const Tensor& parts) { return flip(parts, wrapped); });
  Tensor y = empty(x.sizes(), like(x));
  TensorView mirrored = x.tensor_view();
  if (x.numel() > 0) {
    int64_t last = 0;
    for (const int64_t a : wrapped) {
      const int d = static_cast<int>(a);
      last += (x.sizes()[d] - 1) * x.strides()[d];
      mirrored.strides[d] = -x.strides()[d];
    }
    mirrored.pointer = static_cast<std::byte*>(mirrored.pointer) + last * size_of(x.dtype());
    launch(kernels::copy, x.device(), {y.tensor_view(), mirrored});
  }
  LEVIN_TRACE("flip", {x}, {y}, {{"axes", wrapped}});
  if (Context* c =
          record("flip", y, {x}, [](Context& k, const Tensor& g) -> Grads { return {flip(g, k.get<Shape>())}; }))
    c->set(wrapped);
  return y;
}

namespace {

/// Returns the part of x that remains after cropping by negative padding.
Tensor cropped(Tensor x, const Shape& pads) {
  for (int i = 0; i + 1 < pads.size(); i += 2) {
    const int axis = x.dim() - 1 - i / 2;
    const int64_t before = std::max<int64_t>(0, -pads[i]), after = std::max<int64_t>(0, -pads[i + 1]);
    const int64_t kept = x.sizes()[axis] - before - after;
    if (kept < 0)
      fail<ShapeError>("[pad] ({}, {}) cuts more than there is of axis {} of {}.", pads[i], pads[i + 1], axis,
                       x.sizes());
    if (before + after > 0) x = narrow(x, axis, before, kept);
  }
  return x;
}

/// Surrounds x with `value`; all pairs are 0 or more.
Tensor padded(const Tensor& x, const Shape& pads, const Scalar& value) {
  Shape sizes = x.sizes();
  int64_t first = 0;
  for (int i = 0; i + 1 < pads.size(); i += 2) sizes[x.dim() - 1 - i / 2] += pads[i] + pads[i + 1];
  Tensor y = full(sizes, value, like(x));
  for (int i = 0; i + 1 < pads.size(); i += 2) first += pads[i] * y.strides()[x.dim() - 1 - i / 2];
  if (x.numel() > 0) {
    launch(kernels::copy, x.device(), {alias(y, x.sizes(), y.strides(), first).tensor_view(), x.tensor_view()});
  }
  LEVIN_TRACE("pad", {x}, {y}, {{"pads", pads}, {"value", value}});
  if (Context* c = record("pad", y, {x}, [](Context& k, const Tensor& g) -> Grads {
        Shape opposite = k.get<Shape>();
        for (int64_t& p : opposite) p = -p;
        return {cropped(g, opposite)};
      }))
    c->set(pads);
  return y;
}

}  // namespace

Tensor pad(const Tensor& x, const Shape& pads, const Scalar& value) {
  if (pads.size() % 2 != 0 || pads.size() / 2 > x.dim())
    fail<ShapeError>("[pad] {} values do not make pairs (before, after) for the axes of {}.", pads.size(), x.sizes());
  const Tensor inside = cropped(x, pads);
  Shape added = pads;
  for (int64_t& p : added) p = std::max<int64_t>(0, p);
  if (x.is_complex()) {
    if (value.to<double>() != 0) levin::detail::refuse_dtype("pad", x.dtype(), "real types, or the value 0");
    return on_parts(inside, [&](const Tensor& parts) { return padded(parts, joined({0, 0}, added), 0); });
  }
  return padded(inside, added, value);
}

}  // namespace levin
