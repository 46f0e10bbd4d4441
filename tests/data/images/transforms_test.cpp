#include <doctest/doctest.h>
#include <levin/data/transforms.h>

#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "support/comparison.h"

using namespace levin;
using namespace levin::data;
using levin::test::approx;

namespace {

Tensor counting_image(const Shape& sizes, DType dtype = kUInt8) {
  std::vector<int> v(static_cast<std::size_t>(sizes.numel()));
  std::iota(v.begin(), v.end(), 1);
  return from_data(v, sizes, {.dtype = dtype});
}

}  // namespace

TEST_CASE("to float") {
  Generator rng;
  const Tensor t = ToFloat{}(from_data<std::uint8_t>({0, 51, 255}, {1, 1, 3}), rng);
  CHECK(t.dtype() == kFloat32);
  CHECK(t.to_vector<float>() == std::vector<float>{0.f, 51.f / 255.f, 1.f});
  CHECK(ToFloat{}(from_data<double>({2.5}, {1, 1}), rng).to_vector<float>() == std::vector<float>{2.5f});
  CHECK_THROWS_AS(ToFloat{}(from_data<int>({1}, {1, 1}), rng), DTypeError);
}

TEST_CASE("normalize") {
  Generator rng;
  const Tensor image = from_data<float>({1, 2, 3, 4}, {2, 1, 2});
  CHECK(Normalize({1, 2}, {2, 4})(image, rng).to_vector<float>() == std::vector<float>{0, 0.5f, 0.25f, 0.5f});
  CHECK(Normalize({1}, {2})(image, rng).to_vector<float>() == std::vector<float>{0, 0.5f, 1, 1.5f});
  CHECK_THROWS_AS(Normalize({1, 2, 3}, {1, 1, 1})(image, rng), ShapeError);
  CHECK_THROWS_AS(Normalize({1, 2}, {1}), ValueError);
  CHECK_THROWS_AS(Normalize({1}, {0}), ValueError);
}

TEST_CASE("random crop takes every window of the padded image") {
  const Tensor image = counting_image({2, 3, 3});
  const RandomCrop crop(3, 1);
  Generator rng(1);
  std::set<std::vector<int>> seen;
  for (int i = 0; i < 400; ++i) {
    const Tensor window = crop(image, rng);
    REQUIRE(window.sizes() == Shape{2, 3, 3});
    seen.insert(window.to_vector<int>());
  }
  std::set<std::vector<int>> expected;
  for (int top = -1; top <= 1; ++top) {
    for (int left = -1; left <= 1; ++left) {
      std::vector<int> v;
      for (int c = 0; c < 2; ++c) {
        for (int y = top; y < top + 3; ++y) {
          for (int x = left; x < left + 3; ++x)
            v.push_back(y < 0 || y > 2 || x < 0 || x > 2 ? 0 : 1 + c * 9 + y * 3 + x);
        }
      }
      expected.insert(v);
    }
  }
  CHECK(seen == expected);
  CHECK(RandomCrop(3)(image, rng).to_vector<int>() == image.to_vector<int>());
  CHECK(RandomCrop(1, 2, 0)(counting_image({3, 3}, kFloat64), rng).sizes() == Shape{1, 2});
  CHECK_THROWS_AS(RandomCrop(6, 1)(image, rng), ShapeError);
  CHECK_THROWS_AS(RandomCrop(0), ValueError);
  CHECK_THROWS_AS(RandomCrop(2)(from_data<float>({1}, {1}), rng), ShapeError);
  // With padding wider than the window, a crop may lie completely outside.
  for (int i = 0; i < 50; ++i) CHECK(RandomCrop(1, 3)(counting_image({1, 1}), rng).item<int>() <= 1);
}

TEST_CASE("random flip mirrors rows with its probability") {
  const Tensor image = counting_image({1, 2, 3});
  const std::vector<int> same{1, 2, 3, 4, 5, 6}, mirrored{3, 2, 1, 6, 5, 4};
  Generator rng(2);
  CHECK(RandomHorizontalFlip(0)(image, rng).to_vector<int>() == same);
  CHECK(RandomHorizontalFlip(1)(image, rng).to_vector<int>() == mirrored);
  constexpr int n = 4000;
  int flips = 0;
  for (int i = 0; i < n; ++i) flips += RandomHorizontalFlip(0.3)(image, rng).to_vector<int>() == mirrored;
  CHECK(std::abs(flips - n * 0.3) < 5 * std::sqrt(n * 0.3 * 0.7));
  CHECK_THROWS_AS(RandomHorizontalFlip(1.5), ValueError);
}

TEST_CASE("compose applies in order") {
  Generator rng;
  const Compose c{RandomHorizontalFlip(1), ToFloat{}, Normalize({1.f / 255}, {1.f / 255})};
  const auto v = c(counting_image({1, 1, 3}), rng).to_vector<double>();
  REQUIRE(v.size() == 3);
  CHECK(v[0] == approx(2, {.relative = 1e-6}));
  CHECK(std::abs(v[2]) < 1e-6);
}
