// Transforms that move boxes and masks with the image, and mixtures of samples.
#include <doctest/doctest.h>
#include <levin/data/augment.h>
#include <levin/data/dataloader.h>
#include <levin/data/mix.h>

#include "data/damage.h"
#include "support/comparison.h"

#include <algorithm>
#include <vector>

using namespace levin;
using namespace levin::data;
using namespace levin::test;

namespace {

constexpr int64_t kHeight = 12, kWidth = 16;

/// An image of one bright rectangle, with the rectangle as a box and as a mask.
Sample scene(int64_t left, int64_t top, int64_t right, int64_t bottom) {
  const Tensor image = zeros({1, kHeight, kWidth}, kUInt8), mask = zeros({1, kHeight, kWidth}, kInt64);
  image.narrow(1, top, bottom - top).narrow(2, left, right - left).fill_(200);
  mask.narrow(1, top, bottom - top).narrow(2, left, right - left).fill_(3);
  const auto corner = [](int64_t v) { return static_cast<float>(v); };
  return Sample::dict({{"image", image},
                       {"boxes", from_data<float>({corner(left), corner(top), corner(right), corner(bottom)}, {1, 4})},
                       {"masks", mask},
                       {"labels", from_data<int64_t>({7}, {1})}});
}

/// The smallest box around the pixels that are not 0; nothing if all are.
std::vector<float> box_of(const Tensor& image) {
  const auto v = image.to_vector<int>();
  const int64_t width = image.size(-1);
  std::vector<float> box;
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (v[i] == 0) continue;
    const auto x = static_cast<float>(static_cast<int64_t>(i) % width),
               y = static_cast<float>(static_cast<int64_t>(i) / width);
    if (box.empty()) box = {x, y, x + 1, y + 1};
    box = {std::min(box[0], x), std::min(box[1], y), std::max(box[2], x + 1), std::max(box[3], y + 1)};
  }
  return box;
}

}  // namespace

TEST_CASE("boxes and masks move with the image") {
  const std::pair<const char*, SampleTransform> exact[] = {
      {"horizontal flip", RandomHorizontalFlip(1)},
      {"vertical flip", RandomVerticalFlip(1)},
      {"pad", Pad(1, 2, 3, 4)},
      {"center crop", CenterCrop(6, 8)},
      {"center crop that pads", CenterCrop(20, 21)},
      {"random crop", RandomCrop(8, 8, 2)},
      {"random crop that pads", RandomCrop(20, 24, 0, {.pad_if_needed = true})},
      {"resize", Resize(24, 48, {.interpolation = Interpolation::nearest})},
      {"resize by an edge", Resize(24, {.interpolation = Interpolation::nearest})},
      {"quarter turn", RandomRotation(std::pair(90.0, 90.0))},
      {"half turn", RandomRotation(std::pair(180.0, 180.0))},
  };
  for (const auto& [name, transform] : exact) {
    CAPTURE(name);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Generator rng(seed);
      const Sample out = transform(scene(4, 3, 9, 7), rng);
      CHECK(out["image"].sizes() == out["masks"].sizes());
      const std::vector<float> seen = box_of(out["image"]);
      CHECK(box_of(out["masks"]) == seen);
      CHECK(out["labels"].to_vector<int>() == std::vector<int>{7});
      const auto box = out["boxes"].to_vector<float>();
      if (seen.empty()) {
        CHECK((box[0] >= box[2] || box[1] >= box[3]));
        continue;
      }
      for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(box[i] - seen[i]) < 1e-4f);
    }
  }
}

TEST_CASE("boxes follow resized windows and turned images") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Generator rng(seed);
    const Sample out = RandomResizedCrop(60, 80, {.scale = {0.5, 1.0}, .interpolation = Interpolation::nearest})(
        scene(4, 3, 9, 7), rng);
    const auto box = out["boxes"].to_vector<float>(), seen = box_of(out["image"]);
    if (seen.empty()) continue;
    for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(box[i] - seen[i]) <= 1.01f);
    const Sample turned = RandomRotation(40)(scene(4, 3, 9, 7), rng);
    const auto around = turned["boxes"].to_vector<float>(), inside = box_of(turned["image"]);
    for (std::size_t i = 0; i < 2; ++i) CHECK(around[i] <= inside[i] + 1);
    for (std::size_t i = 2; i < 4; ++i) CHECK(around[i] >= inside[i] - 1);
  }
}

TEST_CASE("a dataset transforms samples as a whole, and lists by their first tensor") {
  struct Scenes : Dataset {
    int64_t size() const override { return 4; }
    Sample get(int64_t i, Generator&) const override { return scene(i, 0, i + 4, 5); }
  };
  const TransformedDataset all(
      Scenes(), ComposeSamples{RandomHorizontalFlip(1), ToFloat(), Normalize({0.5f}, {2.f}), SanitizeBoundingBoxes()});
  Generator rng;
  const Sample third = all.get(2, rng);
  CHECK(third["boxes"].to_vector<float>() == std::vector<float>{10, 0, 14, 5});
  CHECK(third["image"].dtype() == kFloat32);
  const TransformedDataset list(TensorDataset({ones({2, 1, 4, 4}), zeros({2}, kInt64)}), RandomCrop(2));
  const Sample first = list.get(0, rng);
  CHECK(first[0].sizes() == Shape{1, 2, 2});
  CHECK(first[1].dtype() == kInt64);
}

TEST_CASE("boxes that became too small are removed with their labels and masks") {
  const Sample sample = Sample::dict({{"image", zeros({1, 8, 8})},
                                      {"boxes", from_data<float>({0, 0, 4, 4, 8, 2, 8, 5, 1, 1, 2, 1.5f}, {3, 4})},
                                      {"labels", from_data<int64_t>({5, 6, 7}, {3})},
                                      {"masks", arange(3).reshape({3, 1, 1})}});
  Generator rng;
  const Sample out = SanitizeBoundingBoxes()(sample, rng);
  CHECK(out["boxes"].to_vector<float>() == std::vector<float>{0, 0, 4, 4});
  CHECK(out["labels"].to_vector<int>() == std::vector<int>{5});
  CHECK(out["masks"].to_vector<int>() == std::vector<int>{0});
  CHECK(SanitizeBoundingBoxes(0.5)(sample, rng)["labels"].to_vector<int>() == std::vector<int>{5, 7});
  Sample wrong = sample;
  wrong["labels"] = zeros({2}, kInt64);
  CHECK(message_of([&] { SanitizeBoundingBoxes()(wrong, rng); }) ==
        "[sanitize_bounding_boxes] \"labels\" is (2,), but there are 3 boxes; give one row each.");
  wrong = sample;
  wrong["boxes"] = zeros({3, 5});
  CHECK(message_of([&] { RandomHorizontalFlip(1)(wrong, rng); }) ==
        "[transform] boxes are floating (N, 4) of x1, y1, x2, y2, not float32 (3, 5).");
  wrong = sample;
  CHECK(message_of([&] { RandomHorizontalFlip(1)(wrong, rng); }) ==
        "[transform] \"masks\" is (3, 1, 1), but the image is (1, 8, 8); they need the same height and width.");
}

TEST_CASE("mixup adds the sample before, and its label, with one share") {
  const Tensor x = from_data<float>({1, 0, 0, 10, 0, 0, 100, 0, 0}, {3, 3}), y = from_data<int64_t>({0, 1, 2}, {3});
  double least = 1, most = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Generator rng(seed);
    const Batch out = MixUp({.alpha = 1, .num_classes = 3})(Batch{x, y}, rng);
    const auto labels = out[1].to_vector<double>(), values = out[0].to_vector<double>();
    const double part = labels[0];
    least = std::min(least, part);
    most = std::max(most, part);
    const double before[] = {100, 1, 10}, own[] = {1, 10, 100};
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(labels[3 * i + i] == approx(part, {.relative = 1e-6}));
      CHECK(labels[3 * i + (i + 2) % 3] == approx(1 - part, {.relative = 1e-5, .absolute = 1e-7}));
      CHECK(values[3 * i] == approx(part * own[i] + (1 - part) * before[i], {.relative = 1e-5}));
    }
  }
  CHECK(least < 0.3);
  CHECK(most > 0.7);
}

TEST_CASE("cutmix replaces one rectangle, and mixes labels by its area") {
  const Tensor x = ones({2, 1, 8, 10}), y = from_data<int64_t>({0, 1}, {2});
  x.select(0, 1).fill_(5);
  bool replaced = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Generator rng(seed);
    const Batch out = CutMix({.num_classes = 2})(Batch{x, y}, rng);
    const auto first = out[0].select(0, 0).to_vector<int>();
    const auto cut = static_cast<double>(std::ranges::count(first, 5));
    CHECK(std::ranges::count(first, 1) == 80 - static_cast<int64_t>(cut));
    Tensor other = equal(out[0].select(0, 0), x.select(0, 0)) ? Tensor() : eq(out[0].select(0, 0), 5).to(kInt64);
    if (other.defined()) {
      const auto box = box_of(other);
      CHECK(static_cast<double>((box[2] - box[0]) * (box[3] - box[1])) == cut);  // it is a rectangle
    }
    CHECK(out[1].to_vector<double>()[1] == approx(cut / 80, {.relative = 1e-5, .absolute = 1e-7}));
    replaced |= cut > 0;
  }
  CHECK(replaced);
  CHECK(x.select(0, 0).to_vector<int>() == std::vector<int>(80, 1));  // the batch itself stays
  Generator rng;
  CHECK(message_of([&] {
          MixUp()(Batch{x, y}, rng);
        }) == "[mixup] labels are int64 (2,); give num_classes for classes (B), or probabilities.");
  CHECK(message_of([] { CutMix({.alpha = 0}); }) == "[cutmix] alpha is 0; give a number above 0.");
  CHECK(message_of([&] {
          CutMix()(Batch{ones({2, 3}), y}, rng);
        }) ==
        "[cutmix] a batch is floating inputs with 4 axes or more and as many labels, not float32 (2, 3) int64 (2,).");
}
