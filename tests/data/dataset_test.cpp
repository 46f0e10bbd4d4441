#include <doctest/doctest.h>
#include <levin/data/dataset.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

using namespace levin;
using namespace levin::data;

namespace {

TensorDataset small() {
  return TensorDataset({from_data<float>({0, 1, 10, 11, 20, 21}, {3, 2}), from_data<std::int64_t>({5, 6, 7}, {3})});
}

ImageDataset images(Transform augment = {}) {
  std::vector<std::uint8_t> v(4 * 2 * 3 * 3);
  std::iota(v.begin(), v.end(), std::uint8_t{0});
  return ImageDataset(from_data(v, {4, 2, 3, 3}), from_data<std::int64_t>({0, 1, 2, 3}, {4}),
                      {.mean = {0.1f, 0.2f}, .std = {0.5f, 2.f}, .augment = std::move(augment)});
}

}  // namespace

TEST_CASE("a batch unpacks and indexes") {
  Batch b{from_data<float>({1, 2, 3}, {3}), from_data<std::int64_t>({4, 5, 6}, {3})};
  auto& [x, y] = b;
  CHECK(x.is_same(b[0]));
  CHECK(y.is_same(b[1]));
  CHECK(b.size() == 3);
  CHECK(Batch{}.size() == 0);
  CHECK_THROWS_WITH_AS(b[2], "[batch] tensor 2 was asked for, but the batch holds 2, counted from 0.", IndexError);
  const auto [copy_x, copy_y] = Batch(b);
  CHECK(copy_x.is_same(x));
}

TEST_CASE("tensor dataset") {
  const TensorDataset d = small();
  CHECK(d.size() == 3);
  Generator rng;
  const Sample s = d.get(1, rng);
  CHECK(s[0].to_vector<int>() == std::vector<int>{10, 11});
  CHECK(s[1].dim() == 0);
  const std::vector<int64_t> indices{2, 0, 2};
  const Batch b = d.get_batch(indices, rng);
  CHECK(b[0].sizes() == Shape{3, 2});
  CHECK(b[0].to_vector<int>() == std::vector<int>{20, 21, 0, 1, 20, 21});
  CHECK(b[1].to_vector<int>() == std::vector<int>{7, 5, 7});
  CHECK(d.all()[1].to_vector<int>() == std::vector<int>{5, 6, 7});
  const std::vector<int64_t> wrong{3};
  CHECK_THROWS_WITH_AS(d.get_batch(wrong, rng), "[dataset] index 3 is out of range for 3 samples, counted from 0.",
                       IndexError);
  CHECK_THROWS_AS(d.get(-1, rng), IndexError);
  CHECK_THROWS_AS(TensorDataset({}), ValueError);
  CHECK_THROWS_AS(TensorDataset({empty({3}), empty({4})}), ShapeError);
  CHECK_THROWS_AS(TensorDataset({empty({})}), ShapeError);
}

TEST_CASE("non-contiguous tensors are accepted") {
  const Tensor wide = from_data<float>({0, 1, 2, 3, 4, 5}, {2, 3});
  const Tensor transposed = alias(wide, {3, 2}, {1, 3}, 0);
  const TensorDataset d({transposed});
  CHECK(d.all()[0].to_vector<int>() == std::vector<int>{0, 3, 1, 4, 2, 5});
  const std::vector<Sample> samples{{{transposed}}, {{transposed}}};
  CHECK(default_collate(samples)[0].to_vector<int>() == std::vector<int>{0, 3, 1, 4, 2, 5, 0, 3, 1, 4, 2, 5});
  CHECK(d.all().to(kCpu)[0].sizes() == Shape{3, 2});
}

TEST_CASE("collating stacks and checks") {
  const std::vector<Sample> samples{{{from_data<float>({1, 2}, {2})}}, {{from_data<float>({3, 4}, {2})}}};
  CHECK(default_collate(samples)[0].sizes() == Shape{2, 2});
  CHECK(default_collate(samples)[0].to_vector<int>() == std::vector<int>{1, 2, 3, 4});
  CHECK(default_collate({}).tensors.empty());
  const std::vector<Sample> ragged{samples[0], {{from_data<float>({3}, {1})}}};
  CHECK_THROWS_WITH_AS(
      default_collate(ragged),
      "[collate] tensor 0 of sample 1 is (1,), that of sample 0 is (2,). Give all samples one shape, or "
      "pass a collate function.",
      ShapeError);
  const std::vector<Sample> mixed{samples[0], {{from_data<double>({3, 4}, {2})}}};
  CHECK_THROWS_AS(default_collate(mixed), DTypeError);
  const std::vector<Sample> uneven{samples[0], {}};
  CHECK_THROWS_AS(default_collate(uneven), ShapeError);
}

TEST_CASE("gathering images as a batch matches loading sample by sample") {
  const ImageDataset d = images();
  const std::vector<int64_t> indices{3, 1};
  const Batch b = d.get_batch(indices, Generator(0));
  CHECK(b[0].sizes() == Shape{2, 2, 3, 3});
  CHECK(b[1].to_vector<int>() == std::vector<int>{3, 1});
  const float* p = b[0].data<float>();
  CHECK(p[0] == (54.f / 255.f - 0.1f) / 0.5f);
  CHECK(p[9] == (63.f / 255.f - 0.2f) / 2.f);
  for (int64_t i = 0; i < 2; ++i) {
    Generator rng;
    const auto one = d.get(indices[static_cast<std::size_t>(i)], rng)[0].to_vector<float>();
    CHECK(std::equal(one.begin(), one.end(), p + i * 18));
  }
  CHECK(ImageDataset(empty({2, 4, 5}, {.dtype = kUInt8}), empty({2}, {.dtype = kInt64})).images().sizes() ==
        Shape{2, 1, 4, 5});
  CHECK_THROWS_AS(ImageDataset(empty({2, 4, 5}), empty({2}, {.dtype = kInt64})), ShapeError);
  CHECK_THROWS_AS(ImageDataset(empty({2, 4, 5}, {.dtype = kUInt8}), empty({3}, {.dtype = kInt64})), ShapeError);
}

TEST_CASE("augmentation is random per sample") {
  const ImageDataset d = images(Compose{RandomCrop(3, 2), RandomHorizontalFlip()});
  const Generator epoch0 = Generator(7).fork(0), epoch1 = Generator(7).fork(1);
  const std::vector<int64_t> forwards{0, 1, 2, 3}, backwards{3, 2, 1, 0};
  const auto a = d.get_batch(forwards, epoch0)[0].to_vector<float>();
  const auto b = d.get_batch(backwards, epoch0)[0].to_vector<float>();
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t k = 0; k < 18; ++k) REQUIRE(a[i * 18 + k] == b[(3 - i) * 18 + k]);
  }
  CHECK(a != d.get_batch(forwards, epoch1)[0].to_vector<float>());
  const ImageDataset wrong = images(ToFloat{});
  CHECK_THROWS_AS(wrong.all(), ShapeError);
}

TEST_CASE("transformed dataset") {
  const TransformedDataset d(small(),
                             [](const Tensor& x, Generator&) { return from_data<float>({x.data<float>()[1]}, {1}); });
  CHECK(d.size() == 3);
  CHECK(d.all()[0].to_vector<int>() == std::vector<int>{1, 11, 21});
  CHECK(d.all()[1].to_vector<int>() == std::vector<int>{5, 6, 7});
}

TEST_CASE("a random split is disjoint, complete and repeatable") {
  const DatasetPtr d = share(images());
  const auto parts = random_split(d, {3, 0, 1}, Generator(5));
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].size() == 3);
  CHECK(parts[1].size() == 0);
  std::set<int64_t> all;
  for (const Subset& s : parts) all.insert(s.indices().begin(), s.indices().end());
  CHECK(all.size() == 4);
  CHECK(random_split(d, {3, 0, 1}, Generator(5))[0].indices() == parts[0].indices());
  CHECK(parts[2].all()[1].item<int64_t>() == parts[2].indices()[0]);
  const auto split = [&](std::uint64_t seed) {
    manual_seed(seed);
    return random_split(TensorDataset({arange(40)}), {30, 10})[1].indices();
  };
  CHECK(split(1) == split(1));
  CHECK(split(1) != split(2));
  CHECK_THROWS_WITH_AS(random_split(d, {3, 2}),
                       "[random_split] the parts 3 + 2 have 5 samples, the dataset has 4. Give sizes of 0 or more with "
                       "that sum.",
                       ValueError);
  CHECK_THROWS_AS(random_split(d, {5, -1}), ValueError);
  CHECK_THROWS_AS(Subset(d, {4}), IndexError);
}

TEST_CASE("datasets one after the other, and side by side") {
  Generator rng(1);
  const ConcatDataset both(small(), small());
  CHECK(both.size() == 6);
  CHECK(both.get(2, rng)[1].item<int64_t>() == 7);
  CHECK(both.get(3, rng)[1].item<int64_t>() == 5);
  CHECK(both.all()[0].sizes() == Shape{6, 2});
  CHECK_THROWS_AS(both.get(6, rng), IndexError);
  const StackDataset side(small(), TensorDataset({from_data<float>({7, 8, 9}, {3})}));
  const Sample sample = side.get(1, rng);
  REQUIRE(sample.tensors.size() == 3);
  CHECK(sample[2].item<float>() == 8);
  CHECK_THROWS_WITH_AS(StackDataset(small(), both), doctest::Contains("[stack_dataset] the datasets have 3 and 6"),
                       ValueError);
  CHECK_THROWS_WITH_AS(ConcatDataset(std::vector<DatasetPtr>{}), doctest::Contains("[concat_dataset] no datasets"),
                       ValueError);
}
