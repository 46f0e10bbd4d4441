#include <levin/autograd/autograd.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace levin;

namespace {

/// Returns how many of the sequence's elements come before each value. A NaN value comes after all of them.
std::vector<int64_t> counted(const std::vector<double>& sequence, const std::vector<double>& values, bool right) {
  std::vector<int64_t> found;
  for (const double v : values)
    found.push_back(std::ranges::count_if(sequence, [&](double edge) {
      return std::isnan(v) || (right ? edge <= v : edge < v);
    }));
  return found;
}

}  // namespace

TEST_CASE("searchsorted finds the places that a count of smaller elements gives") {
  manual_seed(5);
  for (const int64_t n : {1, 2, 3, 7, 8, 9, 31, 32, 33, 1000}) {
    CAPTURE(n);
    Tensor sequence = sort(floor(mul(randn({n}, kFloat64), 3))).values;  // many equal elements
    Tensor values = floor(mul(randn({4, 25}, kFloat64), 4));
    if (n > 8) {
      sequence[n - 1].fill_(std::numeric_limits<double>::quiet_NaN());
      sequence[n - 2].fill_(std::numeric_limits<double>::infinity());
      sequence[0].fill_(-std::numeric_limits<double>::infinity());
      values[0][0].fill_(std::numeric_limits<double>::quiet_NaN());
      values[0][1].fill_(std::numeric_limits<double>::infinity());
      values[0][2].fill_(-std::numeric_limits<double>::infinity());
    }
    for (const bool right : {false, true}) {
      CAPTURE(right);
      const Tensor found = searchsorted(sequence, values, right);
      CHECK(found.dtype() == kInt64);
      CHECK(found.sizes() == values.sizes());
      CHECK(found.to_vector<int64_t>() ==
            counted(sequence.to_vector<double>(), values.to_vector<double>(), right));
    }
  }
}

TEST_CASE("searchsorted: sequences of their own for each row, integers, scalars and nothing") {
  manual_seed(6);
  const Tensor sequences = sort(randint(-50, 50, {2, 3, 41})).values, values = randint(-60, 60, {2, 3, 17});
  const Tensor found = searchsorted(sequences, values);
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 3; ++j)
      CHECK(found[i][j].to_vector<int64_t>() ==
            counted(sequences[i][j].to_vector<double>(), values[i][j].to_vector<double>(), false));
  CHECK(searchsorted(tensor<int64_t>({1, 5, 9}), tensor<int64_t>({5})[0], true).item<int64_t>() == 2);
  CHECK(searchsorted(zeros({0}), tensor({3.0, -3.0})).to_vector<int64_t>() == std::vector<int64_t>{0, 0});
  CHECK(searchsorted(tensor({1.0, 2.0}), zeros({3, 0})).sizes() == Shape{3, 0});
  CHECK_THROWS_WITH_AS(searchsorted(zeros({2, 4}), zeros({3, 5})),
                       doctest::Contains("[searchsorted] values is (3, 5), but a sequence of (2, 4) needs"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(searchsorted(zeros({2, 4}), zeros({5})), doctest::Contains("leading sizes"), ShapeError);
}

TEST_CASE("isin: sets that are compared one by one, and larger ones that are sorted") {
  manual_seed(7);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const int64_t n : {0, 1, 16, 17, 500}) {
    CAPTURE(n);
    const Tensor x = floor(mul(randn({30, 10}, kFloat64), 20)), set = floor(mul(randn({n}, kFloat64), 20));
    x[0][0].fill_(nan);
    if (n > 1) set[1].fill_(nan);  // which equals nothing
    const std::vector<double> known = set.to_vector<double>();
    std::vector<bool> expected;
    for (const double v : x.to_vector<double>()) expected.push_back(std::ranges::find(known, v) != known.end());
    CHECK(isin(x, set).sizes() == x.sizes());
    CHECK(isin(x, set).to_vector<bool>() == expected);
  }
  const Tensor numbers = arange(int64_t{40});
  CHECK(isin(numbers, mul(arange(20.0), 2)).to_vector<bool>() == eq(remainder(numbers, 2), 0).to_vector<bool>());
  CHECK(isin(gt(numbers, 3), gt(numbers, -1)).to_vector<bool>() == gt(numbers, 3).to_vector<bool>());
  CHECK(isin(numbers[3], numbers).item<bool>());
  const Tensor points = complex(tensor({3.0, 3.0, 50.0}), tensor({0.0, 1.0, 0.0}));  // complex numbers have no order
  CHECK(isin(points, numbers).to_vector<bool>() == std::vector<bool>{true, false, false});
}

TEST_CASE("mode: the smallest of the most frequent values, at its last place") {
  manual_seed(8);
  const Tensor x = randint(0, 40, {3, 300, 2});
  const ValuesIndices found = mode(x, 1);
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 2; ++j) {
      const std::vector<int64_t> line = x[i].select(1, j).to_vector<int64_t>();
      int64_t best = 0;
      for (int64_t v = 1; v < 40; ++v)
        if (std::ranges::count(line, v) > std::ranges::count(line, best)) best = v;
      CHECK(found.values[i][j].item<int64_t>() == best);
      const auto last = std::ranges::find(line.rbegin(), line.rend(), best);
      CHECK(found.indices[i][j].item<int64_t>() == line.rend() - last - 1);
    }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(mode(tensor({nan, 2.0, nan, 2.0, nan})).values.item<double>() == 2.0);  // NaN equals nothing
}
