// Views, joining, padding and creation.

#include "lowering.h"

#include <levin/autograd/ops/rearrange.h>

#include <cstdint>

namespace levin::interop::onnx {

namespace export_shape {
namespace {

using L = Lowering;

void reshape(L& l) {
  const Extents &from = l.value(0).sizes, &to = l.result().sizes;
  l.set(l.reshape(l.in(), from, to));
}

void expand(L& l) {
  const Extents& to = l.result().sizes;
  if (l.value(0).sizes == to) return l.set(l.in());
  l.set(l.add("Expand", {l.in(), l.sizes(to)}));
}

/// The elements that a basic index takes of an axis: `length` of them from `start` on, one at each step.
struct Taken {
  Extent start, length, step, picked;
};

std::vector<Taken> taken_of(L& l) {
  const Extents& list = l.extents("taken");
  std::vector<Taken> taken;
  for (std::size_t i = 0; i + 3 < list.size(); i += 4)
    taken.push_back({list[i], list[i + 1], list[i + 2], list[i + 3]});
  return taken;
}

void slice(L& l) {
  const Extents& from = l.value(0).sizes;
  const std::vector<Taken> taken = taken_of(l);
  std::vector<int64_t> axes, steps, picked;
  Extents starts, ends, kept, left;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const Taken& t = taken[i];
    const int64_t step = t.step.offset;
    kept.push_back(t.length);
    if (t.picked.offset != 0)
      picked.push_back(static_cast<int64_t>(i));
    else
      left.push_back(t.length);
    if (t.start == Extent{} && t.length == from[i]) continue;
    axes.push_back(static_cast<int64_t>(i));
    steps.push_back(step);
    starts.push_back(t.start);  // the last element lies step (length - 1) after the first
    ends.push_back({t.start.slope + step * t.length.slope, t.start.offset + step * (t.length.offset - 1) + 1});
  }
  const Extents& to = l.result().sizes;
  if (axes.size() == 1 && picked.size() == 1 && axes[0] == picked[0] && left == to && starts[0].fixed()) {
    const std::string at = l.constant(tensor(starts[0].offset, {.dtype = kInt64}));
    return l.set(l.add("Gather", {l.in(), at}, {{"axis", axes[0]}}));
  }
  std::string y = l.in();
  if (!axes.empty()) y = l.add("Slice", {y, l.sizes(starts), l.sizes(ends), l.list(axes), l.list(steps)});
  if (kept == to) return l.set(y);
  l.set(left == to ? l.add("Squeeze", {y, l.list(picked)}) : l.reshape(y, kept, to));
}

void split(L& l) {
  const std::vector<int64_t> sizes = l.integers("sizes");
  const int64_t axis = l.axis();
  const auto parts = l.add_many("Split", {l.in(), l.list(sizes)}, sizes.size(), {{"axis", axis}});
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (l.step().outputs[i] >= 0) l.set(parts[i], i);
}

/// Windows along an axis, which becomes two: (..., windows, ...) and, at the end, the window's elements.
void unfold(L& l) {
  const int64_t axis = l.axis(), size = l.integer("size"), step = l.integer("step");
  const Extent windows = l.result().sizes[static_cast<std::size_t>(axis)];
  if (!windows.fixed()) l.refuse("its windows lie along the batch axis");
  std::vector<int64_t> places;
  for (int64_t w = 0; w < windows.offset; ++w)
    for (int64_t i = 0; i < size; ++i) places.push_back(w * step + i);
  const std::string index = l.constant(from_data(places, {windows.offset, size}));
  const std::string y = l.add("Gather", {l.in(), index}, {{"axis", axis}});  // (..., windows, size, ...)
  std::vector<int64_t> order;
  for (int64_t d = 0; d <= l.rank(); ++d)
    if (d != axis + 1) order.push_back(d);
  order.push_back(axis + 1);
  l.set(axis + 1 == l.rank() ? y : l.permute(y, order));
}

void cat(L& l) {
  std::vector<std::string> parts;
  const std::size_t rank = l.result().sizes.size();
  for (std::size_t i = 0; i < l.step().inputs.size(); ++i)
    if (l.value(i).sizes.size() == rank) parts.push_back(l.in_as(i, l.result().dtype));  // else it is empty
  l.set(parts.size() == 1 ? parts[0] : l.add("Concat", parts, {{"axis", l.integer("axis")}}));
}

void flip(L& l) {
  const std::vector<int64_t> axes = l.integers("axes");
  if (axes.empty()) return l.set(l.in());
  const std::vector<int64_t> starts(axes.size(), -1), ends(axes.size(), INT64_MIN), steps(axes.size(), -1);
  l.set(l.add("Slice", {l.in(), l.list(starts), l.list(ends), l.list(axes), l.list(steps)}));
}

void roll(L& l) {
  const std::vector<int64_t> shifts = l.integers("shifts"), axes = l.integers("axes");
  std::string y = l.in();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + l.rank() : axes[i];
    const Extent size = l.value(0).sizes[static_cast<std::size_t>(axis)];
    if (!size.fixed()) l.refuse("it moves along the batch axis");
    const int64_t moved = size.offset == 0 ? 0 : (shifts[i] % size.offset + size.offset) % size.offset;
    if (moved == 0) continue;
    const auto parts = l.add_many("Split", {y, l.list({size.offset - moved, moved})}, 2, {{"axis", axis}});
    y = l.add("Concat", {parts[1], parts[0]}, {{"axis", axis}});
  }
  l.set(y);
}

/// Pairs of the last axes, from the last one on, as ONNX's numbers before all axes and after all axes.
std::string pads_of(L& l) {
  const std::vector<int64_t> pads = l.integers("pads");
  const auto rank = static_cast<std::size_t>(l.rank());
  std::vector<int64_t> all(2 * rank);
  for (std::size_t pair = 0; 2 * pair < pads.size(); ++pair) {
    all[rank - 1 - pair] = pads[2 * pair];
    all[2 * rank - 1 - pair] = pads[2 * pair + 1];
  }
  return l.list(all);
}

void pad(L& l) {
  if (l.value(0).sizes == l.result().sizes) return l.set(l.in());
  l.set(l.add("Pad", {l.in(), pads_of(l), l.scalar("value", l.result().dtype)}));
}

/// ONNX has no padding that continues at the other end before opset 19.
void pad_around(L& l) {
  const std::vector<int64_t> pads = l.integers("pads");
  std::string y = l.in();
  for (std::size_t pair = 0; 2 * pair < pads.size(); ++pair) {
    const int64_t axis = l.rank() - 1 - static_cast<int64_t>(pair), before = pads[2 * pair], after = pads[2 * pair + 1];
    std::vector<std::string> parts{y};
    const auto part = [&](int64_t start, int64_t end) {
      return l.add("Slice", {y, l.list({start}), l.list({end}), l.list({axis})});
    };
    if (before > 0) parts.insert(parts.begin(), part(-before, INT64_MAX));
    if (after > 0) parts.push_back(part(0, after));
    if (parts.size() > 1) y = l.add("Concat", parts, {{"axis", axis}});
  }
  l.set(y);
}

void pad_mode(L& l) {
  const auto mode = static_cast<PadMode>(l.integer("mode"));
  for (const int64_t p : l.integers("pads"))
    if (p < 0) l.refuse("a padding is negative");
  if (mode == PadMode::circular) return pad_around(l);
  l.set(l.add("Pad", {l.in(), pads_of(l)}, {{"mode", mode == PadMode::reflect ? "reflect" : "edge"}}));
}

void triangle(L& l) {
  l.set(l.add("Trilu", {l.in(), l.constant(tensor(l.integer("diagonal"), {.dtype = kInt64}))},
              {{"upper", l.integer("upper")}}));
}

void full(L& l) {
  const Tensor value = tensor(l.real("value"), {.dtype = kFloat64}).to(l.result().dtype).reshape({1});
  l.set(l.add("ConstantOfShape", {l.sizes(l.result().sizes)}, {{"value", value}}));
}

/// Only ranges whose end depends on the batch size are steps.
void arange(L& l) {
  const auto number = [&](const char* name) { return l.scalar(name, l.result().dtype); };
  l.set(l.add("Range", {number("start"), number("end"), number("step")}));
}

const ExportRow kRows[] = {
    {"reshape", reshape},
    {"permute", [](L& l) { l.set(l.permute(l.in(), l.integers("axes"))); }},
    {"expand", expand},
    {"squeeze",
     [](L& l) {
       const bool same = l.result().sizes.size() == l.value(0).sizes.size();
       l.set(same ? l.in() : l.add("Squeeze", {l.in(), l.list({l.integer("axis")})}));
     }},
    {"unsqueeze",
     [](L& l) {
       l.set(l.add("Unsqueeze", {l.in(), l.list({l.integer("axis")})}));
     }},
    {"slice", slice},
    {"split", split},
    {"unfold", unfold},
    {"cat", cat},
    {"flip", flip},
    {"roll", roll},
    {"pad", pad},
    {"pad_mode", pad_mode},
    {"triangle", triangle},
    {"full", full},
    {"arange", arange},
};

}  // namespace
}  // namespace export_shape

std::span<const ExportRow> shape_export_rows() { return export_shape::kRows; }

}  // namespace levin::interop::onnx
