// Operators of ONNX that change the shape, join, or create. Shapes are int64 tensors on the CPU.

#include "interpreter.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/view.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace levin::interop::onnx {

namespace import_shape {
namespace {

using List = std::vector<std::int64_t>;

Shape shape_of(const Call& c, const List& sizes) {
  if (sizes.size() > kMaxDims) c.refuse(fmt::format("{} dimensions are more than {}", sizes.size(), kMaxDims));
  return Shape(sizes.begin(), sizes.end());
}

Tensor int64s(const List& values) { return from_data(values, {static_cast<int64_t>(values.size())}); }

Tensors shape(const Call& c) {
  const Tensor x = c[0];
  const std::int64_t dims = x.dim();
  const auto bound = [&](std::string_view name, std::int64_t otherwise) {
    const std::int64_t v = c.integer(name, otherwise);
    return std::clamp<std::int64_t>(v < 0 ? v + dims : v, 0, dims);
  };
  const std::int64_t start = bound("start", 0), end = std::max(start, bound("end", dims));
  return {int64s(List(x.sizes().begin() + start, x.sizes().begin() + end))};
}

Tensors reshape_node(const Call& c) {
  const Tensor x = c[0];
  List sizes = c.list(1);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] == 0 && c.integer("allowzero", 0) == 0) {
      if (i >= static_cast<std::size_t>(x.dim())) c.refuse("a size to be copied is not there");
      sizes[i] = x.sizes()[static_cast<int>(i)];
    }
  return {reshape(x, shape_of(c, sizes))};
}

Tensors flatten_node(const Call& c) {
  const Tensor x = c[0];
  std::int64_t axis = c.integer("axis", 1), rows = 1;
  if (axis < 0) axis += x.dim();
  if (axis < 0 || axis > x.dim()) c.refuse(fmt::format("axis {} of {}", axis, to_string(x.sizes())));
  for (int d = 0; d < axis; ++d) rows *= x.sizes()[d];
  return {reshape(x, {rows, x.numel() / std::max<std::int64_t>(rows, 1)})};
}

Tensors squeeze_node(const Call& c) {
  Tensor x = c[0];
  List axes = c.list_or_attribute(1, "axes");
  if (axes.empty() && !c.has(1)) return {squeeze(x)};
  for (std::int64_t& a : axes) a = wrap_axis(a, x.dim(), "OnnxModel");
  std::ranges::sort(axes, std::greater<>());
  for (const std::int64_t a : axes) x = squeeze(x, a);
  return {x};
}

Tensors unsqueeze_node(const Call& c) {
  Tensor x = c[0];
  List axes = c.list_or_attribute(1, "axes");
  const int dims = x.dim() + static_cast<int>(std::min<std::size_t>(axes.size(), kMaxDims + 1));
  for (std::int64_t& a : axes) a = wrap_axis(a, dims, "OnnxModel");
  std::ranges::sort(axes);
  for (const std::int64_t a : axes) x = unsqueeze(x, a);
  return {x};
}

Tensors transpose_node(const Call& c) {
  const Tensor x = c[0];
  List order = c.integers("perm");
  if (order.empty())
    for (int d = x.dim() - 1; d >= 0; --d) order.push_back(d);
  return {permute(x, shape_of(c, order))};
}

Tensors expand_node(const Call& c) {
  const Tensor x = c[0];
  return {expand(x, broadcast_shapes(x.sizes(), shape_of(c, c.list(1)), "OnnxModel"))};
}

Tensors tile_node(const Call& c) { return {repeat(c[0], shape_of(c, c.list(1)))}; }

Tensors concat(const Call& c) {
  Tensors parts;
  for (std::size_t i = 0; i < c.inputs(); ++i) parts.push_back(c[i]);
  return {cat(parts, c.integer("axis", 0))};
}

Tensors split_node(const Call& c) {
  const Tensor x = c[0];
  const int axis = c.axis("axis", 0, x.dim());
  List sizes = c.list_or_attribute(1, "split");
  if (sizes.empty()) {  // as equal as possible; the last part may be smaller
    const auto parts = static_cast<std::int64_t>(c.outputs());
    const std::int64_t size = (x.size(axis) + parts - 1) / parts;
    for (std::int64_t left = x.size(axis), i = 0; i < parts; ++i, left -= sizes.back())
      sizes.push_back(std::min(left, size));
  }
  if (sizes.size() != c.outputs()) c.refuse(fmt::format("{} sizes for {} parts", sizes.size(), c.outputs()));
  if (std::ranges::any_of(sizes, [](std::int64_t s) { return s < 0; })) c.refuse("a part has a negative size");
  return split(x, sizes, axis);
}

/// Start, end and step of an axis; negative steps run backwards.
Tensor sliced(const Call& c, const Tensor& x, int axis, std::int64_t start, std::int64_t end, std::int64_t step) {
  const std::int64_t size = x.size(axis);
  if (step == 0) c.refuse("a step is 0");
  if (step > 0)
    return slice(x, axis, Slice(std::max(start, -size), std::clamp(end, -size, size), std::min(step, size + 1)));
  const std::int64_t first = std::clamp<std::int64_t>(start < 0 ? start + size : start, -1, size - 1);
  const std::int64_t last = std::clamp<std::int64_t>(end < -size ? -1 : end < 0 ? end + size : end, -1, size - 1);
  List places;
  for (std::int64_t i = first; i > last; i += step) places.push_back(i);
  return index_select(x, axis, int64s(places).to(x.device()));
}

Tensors slice_node(const Call& c) {
  Tensor x = c[0];
  const List starts = c.list_or_attribute(1, "starts"), ends = c.list_or_attribute(2, "ends");
  List axes = c.list_or_attribute(3, "axes"), steps = c.has(4) ? c.list(4) : List(starts.size(), 1);
  if (axes.empty())
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    c.refuse("starts, ends, axes and steps differ in length");
  for (std::size_t i = 0; i < starts.size(); ++i)
    x = sliced(c, x, wrap_axis(axes[i], x.dim(), "OnnxModel"), starts[i], ends[i], steps[i]);
  return {x};
}

Tensors pad_node(const Call& c) {
  const Tensor x = c[0];
  const List pads = c.list_or_attribute(1, "pads");
  List axes;
  if (c.has(3))
    axes = c.list(3);
  else
    for (int d = 0; d < x.dim(); ++d) axes.push_back(d);
  if (pads.size() != 2 * axes.size()) c.refuse(fmt::format("{} pads for {} axes", pads.size(), axes.size()));
  Shape all = Shape::filled(0, 0);
  List before(static_cast<std::size_t>(x.dim())), after(before);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(wrap_axis(axes[i], x.dim(), "OnnxModel"));
    before[axis] = pads[i];
    after[axis] = pads[axes.size() + i];
  }
  int last = 0;  // the first axes that are not padded need no pairs
  while (last < x.dim() && before[static_cast<std::size_t>(last)] == 0 && after[static_cast<std::size_t>(last)] == 0)
    ++last;
  if (2 * (x.dim() - last) > kMaxDims) c.refuse("more than four axes are padded");
  for (int d = x.dim() - 1; d >= last; --d) {
    all.push_back(before[static_cast<std::size_t>(d)]);
    all.push_back(after[static_cast<std::size_t>(d)]);
  }
  const std::string_view mode = c.text("mode", "constant");
  if (mode == "constant") return {pad(x, all, c.has(2) ? c[2].item_scalar() : Scalar(c.real("value", 0)))};
  if (mode == "reflect") return {pad(x, all, PadMode::reflect)};
  if (mode == "edge") return {pad(x, all, PadMode::replicate)};
  if (mode == "wrap") return {pad(x, all, PadMode::circular)};
  c.refuse(fmt::format("the mode is \"{}\"", mode));
}

Tensors constant(const Call& c) {
  if (const Attribute* a = c.find("value")) {
    if (a->tensor.defined()) return {a->tensor};
  } else if (c.find("value_float")) {
    return {tensor(c.real("value_float", 0), {.dtype = kFloat32})};
  } else if (c.find("value_int")) {
    return {tensor(c.integer("value_int", 0), {.dtype = kInt64})};
  } else if (const Attribute* reals = c.find("value_floats")) {
    return {from_data(reals->reals, {static_cast<std::int64_t>(reals->reals.size())})};
  } else if (c.find("value_ints")) {
    return {int64s(c.integers("value_ints"))};
  }
  c.refuse("it has no value that Levin reads");
}

Tensors constant_of_shape(const Call& c) {
  const Shape sizes = shape_of(c, c.list(0));
  const Attribute* a = c.find("value");
  if (!a || !a->tensor.defined()) return {zeros(sizes, {.dtype = kFloat32})};
  if (a->tensor.numel() != 1) c.refuse("its value is not one number");
  return {full(sizes, a->tensor.item_scalar(), {.dtype = a->tensor.dtype()})};
}

Tensors range(const Call& c) {
  const Tensor start = c[0];
  return {arange(start.item_scalar(), c[1].item_scalar(), c[2].item_scalar(), {.dtype = start.dtype()})};
}

Tensors trilu(const Call& c) {
  const std::int64_t k = c.has(1) ? c.number(1) : 0;
  return {c.integer("upper", 1) != 0 ? triu(c[0], k) : tril(c[0], k)};
}

Tensors eye_like(const Call& c) {
  const Tensor x = c[0];
  if (x.dim() != 2) c.refuse("the input is no matrix");
  const Tensor y = triu(tril(ones_like(x), c.integer("k", 0)), c.integer("k", 0));
  return {y};
}

Tensors depth_to_space(const Call& c) {
  const Tensor x = c[0];
  const std::int64_t r = c.integer("blocksize", 0);
  if (c.text("mode", "DCR") == "CRD") return {pixel_shuffle(x, r)};
  if (x.dim() != 4 || r < 1 || x.size(1) % (r * r) != 0) c.refuse("the channels do not divide into blocks");
  const std::int64_t n = x.size(0), depth = x.size(1) / (r * r), h = x.size(2), w = x.size(3);
  return {reshape(permute(reshape(x, {n, r, r, depth, h, w}), {0, 3, 4, 1, 5, 2}), {n, depth, h * r, w * r})};
}

Tensors space_to_depth(const Call& c) {
  const Tensor x = c[0];
  const std::int64_t r = c.integer("blocksize", 0);
  if (x.dim() != 4 || r < 1 || x.size(2) % r != 0 || x.size(3) % r != 0)
    c.refuse("the image does not divide into blocks");
  const std::int64_t n = x.size(0), depth = x.size(1), h = x.size(2) / r, w = x.size(3) / r;
  return {reshape(permute(reshape(x, {n, depth, h, r, w, r}), {0, 3, 5, 1, 2, 4}), {n, depth * r * r, h, w})};
}

/// Its mask says that nothing was dropped.
Tensors dropout_node(const Call& c) {
  if (c.outputs() < 2) return {c[0]};
  return {c[0], ones(c[0].sizes(), {.dtype = kBool, .device = c[0].device()})};
}

const ImportRow kRows[] = {
    {"Shape", 1, shape},
    {"Size", 1, [](const Call& c) -> Tensors { return {tensor(c[0].numel(), {.dtype = kInt64})}; }},
    {"Reshape", 5, reshape_node},
    {"Flatten", 1, flatten_node},
    {"Squeeze", 1, squeeze_node},
    {"Unsqueeze", 1, unsqueeze_node},
    {"Transpose", 1, transpose_node},
    {"Expand", 8, expand_node},
    {"Tile", 6, tile_node},
    {"Concat", 4, concat},
    {"Split", 2, split_node},
    {"Slice", 1, slice_node},
    {"Pad", 2, pad_node},
    {"Constant", 1, constant},
    {"ConstantOfShape", 9, constant_of_shape},
    {"Range", 11, range},
    {"Trilu", 14, trilu},
    {"EyeLike", 9, eye_like},
    {"DepthToSpace", 1, depth_to_space},
    {"SpaceToDepth", 1, space_to_depth},
    {"Dropout", 7, dropout_node},
};

}  // namespace
}  // namespace import_shape

std::span<const ImportRow> shape_import_rows() { return import_shape::kRows; }

}  // namespace levin::interop::onnx
