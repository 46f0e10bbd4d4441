#include <doctest/doctest.h>
#include <levin/data/collate.h>

#include "damage.h"

#include <numeric>
#include <vector>

using namespace levin;
using namespace levin::data;
using namespace levin::test;

namespace {

/// Sample i: i + 1 rows of (i, i), the label i, and an image of (1, i + 1, 2).
class Ragged final : public Dataset {
 public:
  int64_t size() const override { return 5; }
  Sample get(int64_t i, Generator&) const override {
    const std::vector<float> rows(static_cast<std::size_t>(2 * (i + 1)), static_cast<float>(i));
    return {from_data(rows, {i + 1, 2}), from_data<int64_t>({i}, {}), from_data(rows, {1, i + 1, 2})};
  }
};

}  // namespace

TEST_CASE("pad_sequence matches PyTorch's") {
  const std::vector<Tensor> list{from_data<int64_t>({1, 2, 3}, {3}), from_data<int64_t>({4}, {1}),
                                 from_data<int64_t>({}, {0})};
  const Tensor time_first = pad_sequence(list);
  CHECK(time_first.sizes() == Shape{3, 3});
  CHECK(time_first.to_vector<int>() == std::vector<int>{1, 4, 0, 2, 0, 0, 3, 0, 0});
  const Tensor batch_first = pad_sequence(list, {.batch_first = true, .padding_value = -1});
  CHECK(batch_first.dtype() == kInt64);
  CHECK(batch_first.to_vector<int>() == std::vector<int>{1, 2, 3, 4, -1, -1, -1, -1, -1});
  const std::vector<Tensor> wide{from_data<float>({1, 2, 3, 4}, {2, 2}), from_data<float>({5, 6}, {1, 2})};
  CHECK(pad_sequence(wide, {.batch_first = true}).to_vector<int>() == std::vector<int>{1, 2, 3, 4, 5, 6, 0, 0});
  const std::vector<Tensor> strided{from_data<float>({1, 2, 3, 4}, {2, 2}).t()};
  CHECK(pad_sequence(strided).to_vector<int>() == std::vector<int>{1, 3, 2, 4});

  CHECK_THROWS_AS(pad_sequence({}), ValueError);
  const std::vector<Tensor> shapes{empty({2, 2}), empty({2, 3})}, types{empty({2}), empty({2}, {.dtype = kInt64})},
      scalar{empty({})};
  CHECK_THROWS_WITH_AS(pad_sequence(shapes),
                       "[pad_sequence] sequence 1 is (2, 3), sequence 0 is (2, 2): only their axis 0 may differ.",
                       ShapeError);
  CHECK_THROWS_AS(pad_sequence(types), DTypeError);
  CHECK_THROWS_AS(pad_sequence(scalar), ShapeError);
}

TEST_CASE("padded batches are the same for any number of workers") {
  for (const int workers : {0, 3}) {
    DataLoader loader(Ragged(), {.batch_size = 2,
                                 .num_workers = workers,
                                 .collate = [pad = pad_collate({.value = 9})](std::span<const Sample> samples) {
                                   std::vector<Sample> two;
                                   for (const Sample& s : samples) two.push_back({{s[0], s[1]}});
                                   return pad(two);
                                 }});
    std::vector<Batch> batches;
    for (Batch& b : loader) batches.push_back(b);
    REQUIRE(batches.size() == 3);
    CHECK(batches[1].tensors.size() == 3);
    CHECK(batches[1][0].sizes() == Shape{2, 4, 2});
    CHECK(batches[1][0].to_vector<int>() == std::vector<int>{2, 2, 2, 2, 2, 2, 9, 9, 3, 3, 3, 3, 3, 3, 3, 3});
    CHECK(batches[1][1].to_vector<int>() == std::vector<int>{2, 3});
    CHECK(batches[1][2].to_vector<int>() == std::vector<int>{3, 4});
    CHECK(batches[2].size() == 1);
  }
}

TEST_CASE("options for the padded tensors and their lengths") {
  const std::vector<Sample> samples{{{from_data<int64_t>({1}, {1}), from_data<int64_t>({1, 2}, {2})}},
                                    {{from_data<int64_t>({2}, {1}), from_data<int64_t>({3}, {1})}}};
  const Batch batch = pad_collate({.places = {1}, .lengths = false})(samples);
  CHECK(batch.tensors.size() == 2);
  CHECK(batch[1].to_vector<int>() == std::vector<int>{1, 2, 3, 0});
  const Batch both = pad_collate({.places = {0, 1}})(samples);
  CHECK(both.tensors.size() == 4);
  CHECK(both[3].to_vector<int>() == std::vector<int>{2, 1});
  CHECK_THROWS_AS(pad_collate({.places = {2}})(samples), IndexError);
  CHECK_THROWS_AS(pad_collate()(std::vector<Sample>{samples[0], {{samples[0][0]}}}), ShapeError);
}

TEST_CASE("lists keep ragged tensors apart") {
  DataLoader loader(Ragged(), {.batch_size = 3, .num_workers = 2, .collate = list_collate()});
  auto it = loader.begin();
  CHECK(it->size() == 3);
  CHECK(it->parts() == 3);
  const Batch images = it->part(2);
  CHECK(images.tensors.size() == 3);
  CHECK(images[2].sizes() == Shape{1, 3, 2});
  CHECK(it->part(1)[1].item<int>() == 1);
  CHECK(it->to(kCpu).size() == 3);
}
