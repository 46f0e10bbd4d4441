#pragma once
// Images of several clothes at random places and in random sizes, and the boxes around them.
#include <levin/levin.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace levin {

inline constexpr std::int64_t kSide = 64, kMostItems = 3, kNames = 11;  // class 0 is the background

/// One to three items of Fashion-MNIST on a noisy ground: a sample is the image (1, 64, 64), the boxes (3, 4) of
/// x1, y1, x2, y2 as shares of the side, and the classes (3) from 1 on, where 0 fills up. The scenes of the training
/// are new in each epoch; those of the test depend on their index alone.
class Scenes : public data::Dataset {
 public:
  Scenes(const std::string& folder, const std::string& split, std::int64_t count)
      : clothes_(split, folder), fixed_(split == "test"), count_(count) {}
  std::int64_t size() const override { return count_; }

  data::Sample get(std::int64_t index, Generator& epoch_rng) const override {
    Generator rng = fixed_ ? Generator(7).fork(0, static_cast<std::uint64_t>(index)) : epoch_rng;
    const Tensor image = 0.2 * rand({kSide, kSide}, {.generator = &rng});
    const Tensor boxes = zeros({kMostItems, 4}), classes = zeros({kMostItems}, kInt64);
    const auto wanted = 1 + static_cast<std::int64_t>(rng.below(kMostItems));
    std::int64_t found = 0;
    for (int tries = 0; tries < 20 && found < wanted; ++tries) {
      const auto item = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(clothes_.size())));
      const Tensor cut = cut_out(clothes_.images()(item, 0).to(kFloat32) / 255);
      const double scale = (20 + 28 * rng.uniform()) / static_cast<double>(std::max(cut.size(0), cut.size(1)));
      const auto resized = [&](int axis) { return std::lround(scale * static_cast<double>(cut.size(axis))); };
      const std::int64_t h = std::max(resized(0), 4L), w = std::max(resized(1), 4L);
      const auto y = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(kSide - h + 1))),
                 x = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(kSide - w + 1)));
      const Tensor box = tensor({x, y, x + w, y + h}).to(kFloat32) / kSide;
      if (found > 0 && box_iou(box.unsqueeze(0), boxes(Slice(0, found))).max().item<double>() > 0.05) continue;
      const Tensor part = image(Slice(y, y + h), Slice(x, x + w));
      part.copy_(maximum(part, interpolate(cut(nil, nil), {.size = {h, w}, .mode = ResizeMode::linear})(0, 0)));
      boxes(found).copy_(box);
      classes(found++).fill_(1 + clothes_.labels()[item].item<std::int64_t>());
    }
    return {image.unsqueeze(0), boxes, classes};
  }

 private:
  /// The smallest part of an image (H, W) that holds all but its darkest pixels.
  static Tensor cut_out(const Tensor& image) {
    const auto bright = [&](std::int64_t axis) { return nonzero(image.amax({axis}) > 0.1).flatten(); };
    const auto range = [](const Tensor& t) { return Slice(t[0].item<std::int64_t>(), t[-1].item<std::int64_t>() + 1); };
    return image(range(bright(1)), range(bright(0)));
  }
  data::FashionMnist clothes_;
  bool fixed_;
  std::int64_t count_;
};

/// Draws boxes (N, 4) into a scene (1, 64, 64), three times as large: (3, 192, 192).
inline Tensor draw(const Tensor& image, const Tensor& boxes) {
  const std::int64_t side = 3 * kSide;
  const Tensor out = interpolate(image.unsqueeze(0), {.size = {side, side}})[0].expand({3, side, side}).clone();
  const Tensor corners = clamp((boxes * side).round(), 0, side - 1).to(kInt64).cpu();
  for (std::int64_t i = 0; i < boxes.size(0); ++i) {
    const auto at = corners[i].to_vector<std::int64_t>();
    const Slice columns(at[0], at[2] + 1), rows(at[1], at[3] + 1);
    for (const Tensor& edge : {out(Slice(), rows, at[0]), out(Slice(), rows, at[2]), out(Slice(), at[1], columns),
                               out(Slice(), at[3], columns)})
      edge.copy_(tensor({0.0f, 1.0f, 0.3f}).unsqueeze(1));
  }
  return out;
}

}  // namespace levin
