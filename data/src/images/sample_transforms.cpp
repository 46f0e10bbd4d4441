// Transforms of samples: images with boxes and masks.

#include <levin/autograd/ops.h>

#include "planes.h"

namespace levin::data {

using detail::Move;

namespace {

Tensor& image_of(Sample& sample) { return sample.contains("image") ? sample["image"] : sample[0]; }

/// Boxes (N, 4) with their corners moved, as the smallest boxes around these, cut at the edges of the new image.
Tensor moved_boxes(const Tensor& boxes, const Move& move, const Tensor& image) {
  if (boxes.dim() != 2 || boxes.size(1) != 4 || !boxes.is_floating())
    throw ShapeError(fmt::format("[transform] boxes are floating (N, 4) of x1, y1, x2, y2, not {} {}.",
                                 name_of(boxes.dtype()), to_string(boxes.sizes())));
  const auto column = [&](int64_t i) { return boxes.select(1, i); };
  const auto moved = [&](const std::array<double, 3>& row, int64_t limit) {
    // The least and greatest coordinate of the four corners; each axis contributes independently.
    const Tensor x1 = column(0) * row[0], x2 = column(2) * row[0], y1 = column(1) * row[1], y2 = column(3) * row[1];
    const Tensor least = minimum(x1, x2) + minimum(y1, y2) + row[2], most = maximum(x1, x2) + maximum(y1, y2) + row[2];
    return std::pair(clamp(least, 0, limit), clamp(most, 0, limit));
  };
  const auto [left, right] = moved(move.x, image.size(-1));
  const auto [top, bottom] = moved(move.y, image.size(-2));
  return stack({left, top, right, bottom}, 1);
}

}  // namespace

Sample GeometricTransform::operator()(const Sample& sample, Generator& rng) const {
  Sample out = sample;
  Tensor& image = image_of(out);
  const Tensor before = image;
  const Move move = draw(before, rng);
  if (!move.pixels) return out;
  image = move.pixels(before, false);
  if (out.contains("boxes")) out["boxes"] = moved_boxes(out["boxes"], move, image);
  for (const char* key : {"masks", "mask"}) {
    if (!out.contains(key)) continue;
    Tensor& mask = out[key];
    if (mask.dim() < 2 || mask.size(-2) != before.size(-2) || mask.size(-1) != before.size(-1))
      throw ShapeError(
          fmt::format("[transform] \"{}\" is {}, but the image is {}; they need the same height and width.", key,
                      to_string(mask.sizes()), to_string(before.sizes())));
    mask = move.pixels(mask, true);
  }
  return out;
}

SampleTransform::Function SampleTransform::of_image(Transform transform) {
  return [transform = std::move(transform)](const Sample& sample, Generator& rng) {
    Sample out = sample;
    Tensor& image = image_of(out);
    image = transform(image, rng);
    return out;
  };
}

ComposeSamples::ComposeSamples(std::initializer_list<SampleTransform> transforms) : transforms_(transforms) {}

Sample ComposeSamples::operator()(const Sample& sample, Generator& rng) const {
  Sample result = sample;
  for (const SampleTransform& t : transforms_) result = t(result, rng);
  return result;
}

SanitizeBoundingBoxes::SanitizeBoundingBoxes(double min_size, std::vector<std::string> keys)
    : min_size_(min_size), keys_(std::move(keys)) {
  if (!(min_size >= 0))
    throw ValueError(fmt::format("[sanitize_bounding_boxes] min_size is {}; use 0 or more.", min_size));
}

Sample SanitizeBoundingBoxes::operator()(const Sample& sample, Generator&) const {
  Sample out = sample;
  const Tensor boxes = out["boxes"];
  const auto corners = boxes.to_vector<double>();
  std::vector<int64_t> kept;
  for (std::size_t i = 0; i + 3 < corners.size(); i += 4) {
    const double width = corners[i + 2] - corners[i], height = corners[i + 3] - corners[i + 1];
    if (width >= min_size_ && height >= min_size_) kept.push_back(static_cast<int64_t>(i / 4));
  }
  const Tensor rows = from_data(kept, {static_cast<int64_t>(kept.size())});
  out["boxes"] = index_select(boxes, 0, rows);
  for (const std::string& key : keys_) {
    if (!out.contains(key)) continue;
    if (out[key].dim() < 1 || out[key].size(0) != boxes.size(0))
      throw ShapeError(fmt::format("[sanitize_bounding_boxes] \"{}\" is {}, but there are {} boxes; give one row each.",
                                   key, to_string(out[key].sizes()), boxes.size(0)));
    out[key] = index_select(out[key], 0, rows);
  }
  return out;
}

}  // namespace levin::data
