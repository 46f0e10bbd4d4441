#include <doctest/doctest.h>
#include <levin/data/dataloader.h>
#include <levin/data/transforms.h>

#include "data/damage.h"
#include "support/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

using namespace levin;
using namespace levin::data;
using namespace levin::test;

namespace {

Tensor counting(const Shape& sizes, DType dtype = kUInt8) {
  std::vector<int> v(static_cast<std::size_t>(sizes.numel()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<int>(i % 200) + 1;
  return from_data(v, sizes, {.dtype = dtype});
}

/// Pixel (y, x) is (37 x + 91 y + 7 x y + 3) mod 256.
Tensor formula(int height, int width) {
  std::vector<int> v;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) v.push_back((x * 37 + y * 91 + x * y * 7 + 3) % 256);
  }
  return from_data(v, {1, height, width}, {.dtype = kUInt8});
}

std::vector<int> ints(const Tensor& t) { return t.to_vector<int>(); }

}  // namespace

TEST_CASE("padding in its four modes") {
  const Tensor row = from_data<std::uint8_t>({1, 2, 3}, {1, 1, 3});
  const auto padded = [&](PaddingMode mode) { return ints(Pad(2, 0, 1, 0, 7, mode)(row)); };
  CHECK(padded(PaddingMode::constant) == std::vector<int>{7, 7, 1, 2, 3, 7});
  CHECK(padded(PaddingMode::edge) == std::vector<int>{1, 1, 1, 2, 3, 3});
  CHECK(padded(PaddingMode::reflect) == std::vector<int>{3, 2, 1, 2, 3, 2});
  CHECK(padded(PaddingMode::symmetric) == std::vector<int>{2, 1, 1, 2, 3, 3});
  CHECK(Pad(1)(counting({2, 3, 4}, kFloat64)).sizes() == Shape{2, 5, 6});
  CHECK(ints(Pad(0, 1, 0, 0)(counting({1, 2}))) == std::vector<int>{0, 0, 1, 2});
  CHECK_THROWS_AS(Pad(-1), ValueError);
  CHECK_THROWS_AS(Pad(3, 0, 0, 0, 0, PaddingMode::reflect)(row), ShapeError);
}

TEST_CASE("center crops, and crops that pad") {
  Generator rng;
  CHECK(ints(CenterCrop(2)(counting({1, 4, 4}), rng)) == std::vector<int>{6, 7, 10, 11});
  CHECK(ints(CenterCrop(1, 2)(counting({1, 3, 3}), rng)) == std::vector<int>{4, 5});  // 0.5 rounds to 0
  CHECK(ints(CenterCrop(3, 1)(counting({1, 1, 1}), rng)) == std::vector<int>{0, 1, 0});
  CHECK_THROWS_AS(CenterCrop(0), ValueError);
  const RandomCrop crop(4, 4, 0, {.pad_if_needed = true, .fill = 9});
  const auto v = ints(crop(from_data<std::uint8_t>({1}, {1, 1, 1}), rng));
  CHECK(std::count(v.begin(), v.end(), 1) == 1);
  CHECK(std::count(v.begin(), v.end(), 9) == 15);
}

TEST_CASE("vertical flip mirrors columns with its probability") {
  Generator rng(3);
  CHECK(ints(RandomVerticalFlip(1)(counting({2, 2, 2}), rng)) == std::vector<int>{3, 4, 1, 2, 7, 8, 5, 6});
  int flips = 0;
  for (int i = 0; i < 1000; ++i) flips += ints(RandomVerticalFlip()(counting({1, 2, 1}), rng))[0] == 2;
  CHECK(std::abs(flips - 500) < 5 * std::sqrt(1000 * 0.25));
  CHECK_THROWS_AS(RandomVerticalFlip(-0.1), ValueError);
}

TEST_CASE("resizing matches Pillow's bytes within 1") {
  const std::map<std::pair<int, int>, std::vector<int>> expected{
      {{4, 5}, {73, 128, 117, 140, 95, 141, 122, 138, 143, 124, 115, 148, 148, 150, 126, 99, 116, 131, 161, 114}},
      {{3, 9}, {81,  124, 112, 155, 88,  131, 174, 71, 114, 95,  138, 136, 134, 177,
                114, 172, 110, 153, 124, 87,  160, 87, 160, 123, 196, 123, 86}},
      {{10, 6}, {17,  69,  122, 180, 148, 29,  69,  126, 137, 107, 128, 109, 134, 155, 136, 79,  124, 146, 199, 108,
                 96,  167, 159, 68,  99,  117, 167, 142, 138, 156, 75,  149, 167, 140, 142, 167, 135, 192, 97,  164,
                 172, 94,  134, 105, 157, 131, 147, 83,  103, 108, 127, 137, 160, 101, 67,  149, 64,  158, 187, 127}},
      {{1, 1}, {130}}};
  for (const auto& [size, values] : expected) {
    const auto v = ints(resize(formula(7, 9), size.first, size.second));
    REQUIRE(v.size() == values.size());
    for (std::size_t i = 0; i < v.size(); ++i) CHECK(std::abs(v[i] - values[i]) <= 1);
  }
  const Tensor row = from_data<float>({0, 1, 2, 3}, {1, 1, 4});
  const auto halved = resize(row, 1, 2).to_vector<double>();
  CHECK(halved[0] == approx(5.0 / 7, {.relative = 1e-6}));
  CHECK(halved[1] == approx(16.0 / 7, {.relative = 1e-6}));
  CHECK(resize(row, 1, 2, Interpolation::bilinear, false).to_vector<float>() == std::vector<float>{0.5f, 2.5f});
  CHECK(resize(row, 1, 2, Interpolation::nearest).to_vector<float>() == std::vector<float>{0, 2});
  CHECK(resize(row, 2, 8, Interpolation::nearest).to_vector<float>() ==
        std::vector<float>{0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 1, 1, 2, 2, 3, 3});
  CHECK_THROWS_AS(resize(row, 0, 2), ValueError);
  CHECK_THROWS_AS(resize(counting({1, 2, 2}, kInt64), 1, 1), DTypeError);
  CHECK_THROWS_AS(resize(empty({1, 0, 2}), 1, 1), ShapeError);
}

TEST_CASE("resizing by the shorter edge") {
  Generator rng;
  const auto sizes = [&](const Resize& r, int64_t h, int64_t w) { return r(counting({1, h, w}), rng).sizes(); };
  CHECK(sizes(Resize(4), 8, 12) == Shape{1, 4, 6});
  CHECK(sizes(Resize(4), 12, 8) == Shape{1, 6, 4});
  CHECK(sizes(Resize(3), 5, 7) == Shape{1, 3, 4});
  CHECK(sizes(Resize(4, {.max_size = 5}), 8, 16) == Shape{1, 2, 5});
  CHECK(sizes(Resize(3, 2), 8, 16) == Shape{1, 3, 2});
  CHECK_THROWS_AS(Resize(4, {.max_size = 4}), ValueError);
  CHECK_THROWS_AS(Resize(4, 4, {.max_size = 8}), ValueError);
}

TEST_CASE("random resized crops keep to scale and ratio") {
  // An image that holds its own coordinates shows where a window came from.
  std::vector<float> v(2 * 40 * 60);
  for (std::size_t y = 0; y < 40; ++y) {
    for (std::size_t x = 0; x < 60; ++x) {
      v[y * 60 + x] = static_cast<float>(y);
      v[2400 + y * 60 + x] = static_cast<float>(x);
    }
  }
  const Tensor image = from_data(v, {2, 40, 60});
  const RandomResizedCrop crop(16,
                               {.scale = {0.2, 0.5}, .ratio = {0.8, 1.25}, .interpolation = Interpolation::nearest});
  Generator rng(5);
  double least = 1e9, most = 0;
  for (int i = 0; i < 200; ++i) {
    const auto w = crop(image, rng).to_vector<float>();
    REQUIRE(w.size() == 2 * 256);
    const double high = static_cast<double>(w[255] - w[0] + 1) * 16 / 15,
                 wide = static_cast<double>(w[511] - w[256] + 1) * 16 / 15;
    least = std::min(least, high * wide);
    most = std::max(most, high * wide);
    CHECK(wide / high > 0.8 * 0.85);
    CHECK(wide / high < 1.25 * 1.18);
  }
  CHECK(least > 0.2 * 2400 * 0.8);
  CHECK(least < 0.27 * 2400);
  CHECK(most < 0.5 * 2400 * 1.25);
  CHECK(most > 0.43 * 2400);
  // If no window fits in ten attempts, the largest center crop is taken.
  const RandomResizedCrop square(2, {.scale = {1, 1}, .ratio = {1, 1}});
  CHECK(square(counting({1, 2, 9}), rng).sizes() == Shape{1, 2, 2});
  CHECK(RandomResizedCrop(3, 5)(image, rng).sizes() == Shape{2, 3, 5});
  CHECK_THROWS_AS(RandomResizedCrop(4, {.scale = {0, 1}}), ValueError);
  CHECK_THROWS_AS(RandomResizedCrop(4, {.ratio = {2, 1}}), ValueError);
}

TEST_CASE("a rotation by 90 degrees is exact and counter-clockwise") {
  Generator rng;
  const Tensor image = counting({1, 3, 3});
  CHECK(ints(RandomRotation({90, 90})(image, rng)) == std::vector<int>{3, 6, 9, 2, 5, 8, 1, 4, 7});
  CHECK(ints(RandomRotation({180, 180})(image, rng)) == std::vector<int>{9, 8, 7, 6, 5, 4, 3, 2, 1});
  CHECK(ints(RandomRotation(0)(image, rng)) == ints(image));
  const auto smooth =
      RandomRotation({90, 90}, {.interpolation = Interpolation::bilinear})(counting({1, 4, 4}, kFloat32), rng);
  CHECK(smooth.to_vector<float>()[0] == approx(4, {.relative = 1e-5}));
  const auto corner = RandomRotation({45, 45}, {.fill = 77})(counting({1, 9, 9}), rng);
  CHECK(ints(corner)[0] == 77);
  CHECK(ints(corner)[40] == 41);
  const auto about = RandomRotation({90, 90}, {.fill = 0, .center = {{0, 0}}})(image, rng);
  CHECK(ints(about) == std::vector<int>(9, 0));
  std::set<std::vector<int>> seen;
  for (int i = 0; i < 20; ++i) seen.insert(ints(RandomRotation(30)(counting({1, 9, 9}), rng)));
  CHECK(seen.size() > 10);
  CHECK_THROWS_AS(RandomRotation(-1), ValueError);
  CHECK_THROWS_AS(RandomRotation({3, 2}), ValueError);
}

TEST_CASE("colours change only by the given strengths") {
  Generator rng(1);
  const Tensor image = from_data<std::uint8_t>({200, 10, 100, 20, 50, 0}, {3, 1, 2});
  CHECK(ints(ColorJitter()(image, rng)) == ints(image));
  for (int i = 0; i < 50; ++i) {
    const auto bright = ints(ColorJitter(0.5)(image, rng));
    const double factor = bright[0] < 255 ? bright[0] / 200.0 : bright[2] / 100.0;
    CHECK(factor >= 0.49);
    CHECK(factor <= 1.5);
    CHECK(std::abs(bright[4] - 50 * factor) <= 1);
    CHECK(bright[5] == 0);

    // Saturation keeps the gray value, up to rounding and clamping.
    const auto vivid = ColorJitter(0, 0, 0.4)(from_data<float>({0.5f, 0.4f, 0.3f}, {3, 1, 1}), rng).to_vector<float>();
    CHECK(0.2989f * vivid[0] + 0.587f * vivid[1] + 0.114f * vivid[2] == approx(0.41845, {.relative = 1e-4}));
    CHECK(vivid[0] - vivid[2] >= 0.2 * 0.59);
    CHECK(vivid[0] - vivid[2] <= 0.2 * 1.41);

    // Contrast keeps the mean of the gray values.
    const auto strong = ColorJitter(0, 0.3)(from_data<float>({0.4f, 0.6f}, {1, 1, 2}), rng).to_vector<float>();
    CHECK(strong[0] + strong[1] == approx(1, {.relative = 1e-5}));

    // Hue keeps the minimum and the maximum of the three.
    const auto turned =
        ColorJitter(0, 0, 0, 0.5)(from_data<float>({0.9f, 0.2f, 0.5f}, {3, 1, 1}), rng).to_vector<float>();
    CHECK(*std::max_element(turned.begin(), turned.end()) == approx(0.9, {.relative = 1e-5}));
    CHECK(*std::min_element(turned.begin(), turned.end()) == approx(0.2, {.relative = 1e-4}));
  }
  const auto gray = ints(ColorJitter(0, 0, 1, 0.5)(from_data<std::uint8_t>({5, 6}, {1, 1, 2}), rng));
  CHECK(gray == std::vector<int>{5, 6});
  CHECK_THROWS_AS(ColorJitter(0, 0, 0, 0.6), ValueError);
  CHECK_THROWS_AS(ColorJitter(-1), ValueError);
  CHECK_THROWS_AS(ColorJitter(1)(counting({2, 3, 3}), rng), ShapeError);
}

TEST_CASE("random erasing overwrites one rectangle") {
  Generator rng(2);
  int erased = 0;
  for (int i = 0; i < 300; ++i) {
    const Tensor image = counting({2, 20, 30});
    const auto before = ints(image), after = ints(RandomErasing({.value = 255})(image, rng));
    CHECK(ints(image) == before);  // the dataset's own image is unchanged
    const auto count = std::count(after.begin(), after.begin() + 600, 255);
    erased += count > 0;
    CHECK(std::count(after.begin() + 600, after.end(), 255) == count);
    CHECK(count <= 0.33 * 600 * 1.2);
    std::set<int64_t> rows, columns;
    for (int64_t k = 0; k < 600; ++k) {
      if (after[static_cast<std::size_t>(k)] == 255) rows.insert(k / 30), columns.insert(k % 30);
    }
    CHECK(static_cast<int64_t>(rows.size() * columns.size()) == count);
  }
  CHECK(std::abs(erased - 150) < 5 * std::sqrt(300 * 0.25));
  const auto noise =
      RandomErasing({.p = 1, .value = std::nullopt})(empty({1, 8, 8}).fill_(50.), rng).to_vector<float>();
  CHECK(std::count(noise.begin(), noise.end(), 50.f) < 64);
  CHECK_THROWS_AS(RandomErasing({.p = 2}), ValueError);
  CHECK_THROWS_AS(RandomErasing({.scale = {0.5, 1.5}}), ValueError);
}

TEST_CASE("augmentations do not depend on workers, batch size or order") {
  std::vector<int> v(24 * 3 * 12 * 10);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<int>(i * 31 % 256);
  const Compose augment{RandomCrop(12, 10, 2, {.padding_mode = PaddingMode::reflect}),
                        RandomHorizontalFlip(),
                        RandomVerticalFlip(),
                        RandomRotation(15),
                        RandomResizedCrop(8),
                        ColorJitter(0.4, 0.4, 0.4, 0.1),
                        ToFloat{},
                        Normalize({0.5f}, {0.5f}),
                        RandomErasing({.p = 0.8, .value = std::nullopt})};
  const auto labels =
      from_data<int64_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}, {24});
  const auto images = from_data(v, {24, 3, 12, 10}, {.dtype = kUInt8});
  const auto by_label = [&](int workers, int64_t batch, bool shuffle) {
    DataLoader loader(TransformedDataset(TensorDataset({images, labels}), augment),
                      {.batch_size = batch, .shuffle = shuffle, .num_workers = workers, .seed = 6});
    std::map<int64_t, std::vector<float>> all;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const auto& [x, y] : loader) {
        for (int64_t i = 0; i < y.numel(); ++i) {
          all[epoch * 100 + y.data<int64_t>()[i]] = x.select(0, i).to_vector<float>();
        }
      }
    }
    return all;
  };
  const auto expected = by_label(0, 4, false);
  CHECK(expected.size() == 48);
  CHECK(expected.at(3) != expected.at(103));
  for (const int workers : {1, 2, 7}) CHECK(by_label(workers, 5, true) == expected);
}
