// Resizing and sampling operators of ONNX.

#include "interpreter.h"

#include <levin/autograd/ops/image.h>

#include <fmt/format.h>

#include <cmath>

namespace levin::interop::onnx {

namespace import_image {
namespace {

using List = std::vector<std::int64_t>;

std::string_view text_of(const Node& n, std::string_view name, std::string_view otherwise) {
  for (const Attribute& a : n.attributes)
    if (a.name == name) return a.text;
  return otherwise;
}

/// interpolate() computes nearest from the left, and linear and cubic from centers of pixels or of corners.
const char* refuses_resize(const Node& n) {
  const std::string_view mode = text_of(n, "mode", "nearest"),
                         transform = text_of(n, "coordinate_transformation_mode", "half_pixel"),
                         nearest = text_of(n, "nearest_mode", "round_prefer_floor");
  if (mode == "nearest") {
    const bool plain = transform == "asymmetric" && nearest == "floor";
    const bool exact = transform == "half_pixel" && nearest == "round_prefer_ceil";
    return plain || exact ? nullptr : "nearest_mode or coordinate_transformation_mode";
  }
  if (mode != "linear" && mode != "cubic") return "its mode";
  if (transform != "half_pixel" && transform != "pytorch_half_pixel" && transform != "align_corners")
    return "coordinate_transformation_mode";
  for (const Attribute& a : n.attributes) {
    if (a.name == "cubic_coeff_a" && a.real != -0.75f) return "cubic_coeff_a";
    if (a.name == "antialias" && a.integer != 0) return "antialias";
    if (a.name == "exclude_outside" && a.integer != 0) return "exclude_outside";
    if (a.name == "axes" && !a.integers.empty()) return "axes";
  }
  return nullptr;
}

Tensors resize(const Call& c) {
  const Tensor x = c[0];
  List sizes;
  if (c.has(3)) {
    sizes = c.list(3);
  } else {
    for (const double f : c[2].to_vector<double>()) {
      if (static_cast<int>(sizes.size()) >= x.dim()) c.refuse("it has more scales than axes");
      sizes.push_back(
          static_cast<std::int64_t>(std::floor(static_cast<double>(x.size(static_cast<int>(sizes.size()))) * f)));
    }
  }
  if (static_cast<int>(sizes.size()) != x.dim() || x.dim() < 3 || sizes[0] != x.size(0) || sizes[1] != x.size(1))
    c.refuse("it resizes other axes than those after the channels");
  const std::string_view mode = c.text("mode", "nearest"),
                         transform = c.text("coordinate_transformation_mode", "half_pixel");
  InterpolateOptions o{.size = Shape(sizes.begin() + 2, sizes.end())};
  if (mode == "nearest") o.mode = transform == "asymmetric" ? ResizeMode::nearest : ResizeMode::nearest_exact;
  if (mode == "linear") o.mode = ResizeMode::linear;
  if (mode == "cubic") o.mode = ResizeMode::bicubic;
  o.align_corners = mode != "nearest" && transform == "align_corners";
  return {interpolate(x, o)};
}

const char* refuses_grid(const Node& n) {
  const std::string_view mode = text_of(n, "mode", "bilinear");
  return mode == "bilinear" || mode == "linear" || mode == "nearest" ? nullptr : "its mode";
}

Tensors grid_sample_node(const Call& c) {
  const std::string_view padding = c.text("padding_mode", "zeros");
  return {grid_sample(c[0], c[1],
                      {.mode = c.text("mode", "bilinear") == "nearest" ? SampleMode::nearest : SampleMode::bilinear,
                       .padding_mode = padding == "zeros"    ? SamplePadding::zeros
                                       : padding == "border" ? SamplePadding::border
                                                             : SamplePadding::reflection,
                       .align_corners = c.integer("align_corners", 0) != 0})};
}

const ImportRow kRows[] = {
    {"Resize", 11, resize, refuses_resize},
    {"GridSample", 16, grid_sample_node, refuses_grid},
};

}  // namespace
}  // namespace import_image

std::span<const ImportRow> image_import_rows() { return import_image::kRows; }

}  // namespace levin::interop::onnx
