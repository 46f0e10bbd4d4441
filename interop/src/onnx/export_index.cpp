// Operations that read or write at positions.

#include "lowering.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/image.h>

#include <algorithm>

namespace levin::interop::onnx {

namespace export_index {
namespace {

using L = Lowering;

void index_select(L& l) { l.set(l.add("Gather", {l.in(0), l.in(1)}, {{"axis", l.axis()}})); }

/// Adds source's slices at positions, given for each element.
void index_add(L& l) {
  const int64_t axis = l.axis();
  std::vector<int64_t> added;
  for (int64_t d = 0; d < l.rank(); ++d)
    if (d != axis) added.push_back(d);
  std::string at = added.empty() ? l.in(1) : l.add("Unsqueeze", {l.in(1), l.list(added)});
  at = l.add("Expand", {at, l.sizes(l.value(2).sizes)});
  l.set(l.add("ScatterElements", {l.in(0), at, l.in(2)}, {{"axis", axis}, {"reduction", "add"}}));
}

void scatter(L& l, bool adds) {
  const Extents &index = l.value(1).sizes, &source = l.value(2).sizes;
  std::string values = l.in(2);
  if (index != source) {  // the index may reach a part only
    std::vector<int64_t> axes;
    for (int64_t d = 0; d < l.rank(); ++d) axes.push_back(d);
    values = l.add("Slice", {values, l.list(std::vector<int64_t>(axes.size())), l.sizes(index), l.list(axes)});
  }
  std::vector<Attribute> attributes{{"axis", l.axis()}};
  if (adds) attributes.emplace_back("reduction", "add");
  l.set(l.add("ScatterElements", {l.in(0), l.in(1), values}, attributes));
}

void one_hot(L& l) {
  const std::string depth = l.constant(tensor(l.integer("classes"), {.dtype = kInt64}));
  const std::string values = l.constant(tensor({0, 1}, {.dtype = l.result().dtype}));
  l.set(l.add("OneHot", {l.in(), depth, values}, {{"axis", -1}}));
}

void interpolate(L& l) {
  const auto mode = static_cast<ResizeMode>(l.integer("mode"));
  const bool aligned = l.integer("align_corners") != 0, nearest = mode == ResizeMode::nearest;
  const Extents& to = l.result().sizes;
  std::vector<Attribute> attributes{{"mode", nearest                      ? "nearest"
                                             : mode == ResizeMode::linear ? "linear"
                                                                          : "cubic"},
                                    {"coordinate_transformation_mode", nearest   ? "asymmetric"
                                                                       : aligned ? "align_corners"
                                                                                 : "half_pixel"}};
  if (nearest) attributes.emplace_back("nearest_mode", "floor");
  if (mode == ResizeMode::bicubic) attributes.emplace_back("cubic_coeff_a", -0.75);
  l.set(l.add("Resize", {l.in(), "", "", l.sizes(to)}, attributes));
}

const TraceAttribute::Value& attribute(const TracedOperation& o, std::string_view name) {
  return std::ranges::find_if(o.attributes, [&](const TraceAttribute& a) { return a.name == name; })->value;
}

/// ONNX's Resize computes the scale from sizes, or sizes from the scale with a rounding of its own: it serves where
/// both agree. The other modes have no operator.
bool resizes(const TracedOperation& o) {
  const auto mode = static_cast<ResizeMode>(std::get<int64_t>(attribute(o, "mode")));
  return std::get<int64_t>(attribute(o, "by_size")) != 0 &&
         (mode == ResizeMode::nearest || mode == ResizeMode::linear || mode == ResizeMode::bicubic);
}

void grid_sample(L& l) {
  const auto mode = static_cast<SampleMode>(l.integer("mode"));
  const auto padding = static_cast<SamplePadding>(l.integer("padding_mode"));
  const char* linear = l.opset() >= 20 ? "linear" : "bilinear";
  l.set(l.add("GridSample", {l.in(0), l.in(1)},
              {{"mode", mode == SampleMode::bilinear ? linear : "nearest"},
               {"padding_mode", padding == SamplePadding::zeros    ? "zeros"
                                : padding == SamplePadding::border ? "border"
                                                                   : "reflection"},
               {"align_corners", l.integer("align_corners")}}));
}

const ExportRow kRows[] = {
    {"index_select", index_select},
    {"embedding",
     [](L& l) {
       l.set(l.add("Gather", {l.in(0), l.in(1)}, {{"axis", 0}}));
     }},
    {"gather",
     [](L& l) {
       l.set(l.add("GatherElements", {l.in(0), l.in(1)}, {{"axis", l.axis()}}));
     }},
    {"index_add", index_add},
    {"scatter", [](L& l) { scatter(l, false); }},
    {"scatter_add", [](L& l) { scatter(l, true); }},
    {"one_hot", one_hot},
    {"interpolate", interpolate, resizes},
    {"grid_sample", grid_sample},
};

}  // namespace
}  // namespace export_index

std::span<const ExportRow> index_export_rows() { return export_index::kRows; }

}  // namespace levin::interop::onnx
