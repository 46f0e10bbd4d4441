// Aspects beyond the operation cases: ties, NaN, orders of sums, gradients with padding, errors of the kernels.

#include "support/tolerance.h"

#include <levin/autograd/autograd.h>
#include <levin/core/parallel.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

using namespace levin;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Returns the indices in stable order; NaN is larger than all numbers.
template <class T>
std::vector<int64_t> stable_order(const std::vector<T>& x, bool descending) {
  const auto less = [](T a, T b) { return a < b || (b != b && a == a); };
  std::vector<int64_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const T u = x[static_cast<std::size_t>(a)], v = x[static_cast<std::size_t>(b)];
    return descending ? less(v, u) : less(u, v);
  });
  return order;
}

/// Checks that the bits are the same with 1, 2, 3 and 7 threads.
template <class F>
void check_threads(F&& f) {
  const int before = num_threads();
  set_num_threads(1);
  const Tensor expected = f();
  for (const int threads : {2, 3, 7}) {
    set_num_threads(threads);
    CHECK(f().template to_vector<double>() == expected.to_vector<double>());
  }
  set_num_threads(before);
}

}  // namespace

TEST_CASE("sort: ties keep their order, NaN comes last, both zeros are equal") {
  const Tensor x = tensor<double>({2.0, kNaN, -0.0, kInfinity, 0.0, -kInfinity, 2.0, kNaN, -1.0});
  const auto up = sort(x), down = sort(x, 0, true);
  CHECK(up.indices.to_vector<int64_t>() == std::vector<int64_t>{5, 8, 2, 4, 0, 6, 3, 1, 7});
  CHECK(down.indices.to_vector<int64_t>() == std::vector<int64_t>{1, 7, 3, 0, 6, 2, 4, 8, 5});
  CHECK(std::signbit(up.values.to_vector<double>()[2]));
  CHECK_FALSE(std::signbit(up.values.to_vector<double>()[3]));
  const auto top = topk(x, 4);
  CHECK(top.indices.to_vector<int64_t>() == std::vector<int64_t>{1, 7, 3, 0});
}

TEST_CASE_TEMPLATE("sort: rows of all lengths around the radix sorts' thresholds", T, double, float, int64_t, int32_t,
                   int16_t, std::int8_t, std::uint8_t) {
  manual_seed(11);
  for (const int64_t n : {1, 31, 33, 127, 128, 1021, 2047, 2048, 5003}) {
    const Tensor x = randint(is_floating(dtype_of<T>) ? -500 : 0, 100, {n}, {.dtype = dtype_of<T>});
    const auto values = x.to_vector<T>();
    for (const bool descending : {false, true}) {
      const auto order = stable_order(values, descending);
      CHECK(argsort(x, 0, descending).template to_vector<int64_t>() == order);
      for (const int64_t k : {int64_t{1}, int64_t{32}, int64_t{33}, n / 20 + 1, n / 2, n}) {
        if (k > n) continue;
        const auto first = topk(x, k, 0, descending).indices.template to_vector<int64_t>();
        CHECK(std::equal(first.begin(), first.end(), order.begin()));
        if (descending || k == 0) continue;
        const auto [value, index] = kthvalue(x, k);
        CHECK(index.template item<int64_t>() == order[k - 1]);
        CHECK(value.template item<T>() == values[order[k - 1]]);
      }
    }
  }
}

TEST_CASE("topk: a few of lines whose elements are not neighbours, with NaN and infinities among them") {
  manual_seed(13);
  const Tensor x = randint(-300, 300, {1200, 3}, {.dtype = kFloat});
  for (const int64_t i : {0, 5, 700, 1199}) x.data<float>()[i * 3 + 1] = static_cast<float>(kNaN);
  for (const int64_t i : {1, 900}) x.data<float>()[i * 3 + 2] = static_cast<float>(kInfinity);
  x.data<float>()[40 * 3 + 2] = static_cast<float>(-kInfinity);
  for (const bool largest : {false, true})
    for (const int64_t k : {1, 3, 6, 32, 33, 75}) {
      const Tensor found = topk(x, k, 0, largest).indices;
      for (int64_t column = 0; column < 3; ++column) {
        const auto order = stable_order(x.select(1, column).contiguous().to_vector<float>(), largest);
        const auto first = found.select(1, column).contiguous().to_vector<int64_t>();
        CHECK(std::equal(first.begin(), first.end(), order.begin()));
        if (!largest) CHECK(kthvalue(x, k, 0).indices.to_vector<int64_t>()[column] == order[k - 1]);
      }
    }
}

TEST_CASE("kthvalue: every rank of lines with ties, NaN, both zeros and keys that differ in few bits") {
  manual_seed(17);
  for (const int64_t n : {33, 300, 2100}) {
    const Tensor few = randint(0, 3, {n}, {.dtype = kInt64}), wide = few * (int64_t{1} << 40) - (int64_t{1} << 62);
    Tensor special = randn({n}, {.dtype = kDouble});
    for (const int64_t i : {3, 4, 30}) special.data<double>()[i] = kNaN;
    special.data<double>()[7] = 0.0;
    special.data<double>()[8] = -0.0;
    for (const Tensor& x : {few, wide, special, special.to(kFloat), zeros({n})}) {
      const auto order = argsort(x, 0).to_vector<int64_t>();
      const Tensor second = stack({zeros_like(x), x});
      for (int64_t k = 1; k <= n; k += n < 1000 ? 1 : 7)
        REQUIRE(kthvalue(second, k).indices.to_vector<int64_t>() == std::vector{k - 1, order[k - 1]});
    }
  }
}

TEST_CASE("sort: extreme numbers of each integer type") {
  const Tensor x = tensor<int64_t>({INT64_MAX, INT64_MIN, -1, 0, 1});
  CHECK(argsort(x).to_vector<int64_t>() == std::vector<int64_t>{1, 2, 3, 4, 0});
  const Tensor y = tensor<int32_t>({INT32_MAX, INT32_MIN, -1, 0, 1});
  CHECK(argsort(y).to_vector<int64_t>() == std::vector<int64_t>{1, 2, 3, 4, 0});
}

TEST_CASE("scatter: the last write to a position stays, and only it gets the gradient") {
  const Tensor x = zeros({3}, {.dtype = kDouble, .requires_grad = true});
  const Tensor source = tensor<double>({1.0, 2.0, 3.0, 4.0}, {.requires_grad = true});
  const Tensor y = scatter(x, 0, tensor<int64_t>({1, 1, 0, 1}), source);
  CHECK(y.to_vector<double>() == std::vector<double>{3, 4, 0});
  (y * tensor<double>({10.0, 20.0, 30.0})).sum().backward();
  CHECK(source.grad().to_vector<double>() == std::vector<double>{0, 0, 10, 20});
  CHECK(x.grad().to_vector<double>() == std::vector<double>{0, 0, 30});
}

TEST_CASE("scatter_add and index_add sum in the order of the index, for any number of threads") {
  manual_seed(12);
  const Tensor index = randint(0, 13, {4099}), rows = randn({4099, 33}),
               wide = index.view({4099, 1}).expand({4099, 33});
  check_threads([&] { return index_add(zeros({13, 33}), 0, index, rows); });
  check_threads([&] { return scatter_add(zeros({13, 33}), 0, wide, rows); });
  std::vector<float> expected(13 * 33, 0.0f);
  const auto at = index.to_vector<int64_t>();
  const auto values = rows.to_vector<float>();
  for (std::size_t i = 0; i < at.size(); ++i)
    for (std::size_t j = 0; j < 33; ++j) expected[static_cast<std::size_t>(at[i]) * 33 + j] += values[i * 33 + j];
  CHECK(index_add(zeros({13, 33}), 0, index, rows).to_vector<float>() == expected);
  CHECK(scatter_add(zeros({13, 33}), 0, wide, rows).to_vector<float>() == expected);
  // Single elements are added without lists of each place's sources.
  const Tensor first = rows.select(1, 0).contiguous(), sums = index_add(zeros({13}), 0, index, first);
  for (std::size_t place = 0; place < 13; ++place) CHECK(sums.to_vector<float>()[place] == expected[place * 33]);
}

TEST_CASE("sums of 16-bit floats are rounded once") {
  const Tensor ones_ = ones({4096}, {.dtype = kBFloat16}), index = zeros({4096}, {.dtype = kInt64});
  CHECK(index_add(zeros({1}, {.dtype = kBFloat16}), 0, index, ones_).item<float>() == 4096.0f);
  CHECK(scatter_add(zeros({1}, {.dtype = kBFloat16}), 0, index, ones_).item<float>() == 4096.0f);
}

TEST_CASE("embedding: the row of padding_idx has no gradient, also not a second one") {
  const Tensor weight = from_data<double>({1, 2, 3, 4, 5, 6}, {3, 2}, {.requires_grad = true});
  const Tensor index = from_data<int64_t>({0, 2, 2, 1}, {2, 2});
  for (const int64_t padding : {2, -1}) {
    const Tensor y = embedding(weight, index, padding);
    CHECK(y.to_vector<double>() == std::vector<double>{1, 2, 5, 6, 5, 6, 3, 4});
    const Tensor g = grad({y}, {weight}, {}, {ones_like(y)})[0];
    CHECK(g.to_vector<double>() == std::vector<double>{1, 1, 1, 1, 0, 0});
  }
  const Tensor column = from_data<double>({1, 2, 3}, {3, 1}, {.requires_grad = true});
  const Tensor of_column = grad({embedding(column, index, 2).sum()}, {column})[0];
  CHECK(of_column.to_vector<double>() == std::vector<double>{1, 1, 0});
  const Tensor seed = ones({2, 2, 2}, {.dtype = kDouble, .requires_grad = true});
  const Tensor g = grad({embedding(weight, index, 2)}, {weight}, {.create_graph = true}, {seed})[0];
  const Tensor back = grad({g}, {seed}, {}, {from_data<double>({1, 2, 3, 4, 5, 6}, {3, 2})})[0];
  CHECK(back.to_vector<double>() == std::vector<double>{1, 2, 0, 0, 0, 0, 3, 4});
}

TEST_CASE("cat joins views, promotes types and skips shapeless parts") {
  const Tensor a = arange(6).view({2, 3}).t(), b = ones({3, 1});
  const Tensor y = cat({a, b, zeros({0})}, 1);
  CHECK(y.dtype() == kFloat);
  CHECK(y.to_vector<float>() == std::vector<float>{0, 3, 1, 1, 4, 1, 2, 5, 1});
  const Tensor x = arange(4, {.dtype = kDouble}).requires_grad_();
  cat({x, x * 2.0}).sum().backward();
  CHECK(x.grad().to_vector<double>() == std::vector<double>{3, 3, 3, 3});
}

TEST_CASE("flip and pad of views") {
  const Tensor x = arange(6).view({2, 3}).t();
  CHECK(flip(x, {0, 1}).to_vector<int64_t>() == std::vector<int64_t>{5, 2, 4, 1, 3, 0});
  CHECK(pad(x, {1, -1, 0, 1}, 9).to_vector<int64_t>() == std::vector<int64_t>{9, 0, 9, 1, 9, 2, 9, 9});
}

TEST_CASE("masked_select's gradient is reduced over broadcasting") {
  const Tensor x = from_data<double>({1, 2, 3}, {3}, {.requires_grad = true});
  const Tensor mask = from_data<bool>({true, false, true, true, true, false}, {2, 3});
  const Tensor y = masked_select(x, mask);
  CHECK(y.to_vector<double>() == std::vector<double>{1, 3, 1, 2});
  y.sum().backward();
  CHECK(x.grad().to_vector<double>() == std::vector<double>{2, 1, 1});
}

TEST_CASE("sampling an image at no point gives it a gradient of zeros") {
  const Tensor x = ones({1, 2, 3, 3}).requires_grad_(), grid = ones({1, 0, 4, 2}).requires_grad_();
  const Tensor y = grid_sample(x, grid);
  CHECK(y.sizes() == Shape{1, 2, 0, 4});
  const std::vector<Tensor> g = grad({y}, {x, grid}, {}, {y});
  CHECK(g[0].to_vector<float>() == std::vector<float>(18, 0.0f));
  CHECK(g[1].sizes() == grid.sizes());
}

TEST_CASE("nonzero finds every position over many chunks") {
  const Tensor x = randint(0, 3, {5 * 16384 + 77});
  const auto values = x.to_vector<int64_t>();
  std::vector<int64_t> expected;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != 0) expected.push_back(static_cast<int64_t>(i));
  CHECK(nonzero(x).to_vector<int64_t>() == expected);
}

TEST_CASE("index_select of single elements starts each task where the last one ended") {
  manual_seed(13);
  const Tensor x = randn({90, 37}), index = randint(0, 37, {1001});
  const auto values = x.to_vector<float>();
  const auto at = index.to_vector<int64_t>();
  std::vector<float> expected;
  for (std::size_t row = 0; row < 90; ++row)
    for (const int64_t i : at) expected.push_back(values[row * 37 + static_cast<std::size_t>(i)]);
  CHECK(index_select(x, 1, index).to_vector<float>() == expected);
}

TEST_CASE("an index out of range is reported with its value and position") {
  const auto said = [](const std::function<void()>& f) -> std::string {
    try {
      f();
    } catch (const IndexError& e) {
      return e.what();
    }
    return "nothing was thrown";
  };
  const Tensor x = zeros({3, 5, 4}), line = zeros({7});
  const Tensor index = zeros({2, 5, 3}, {.dtype = kInt64});
  index.select(0, 1).select(0, 2).select(0, 1).fill_(9);
  const auto expect = [&](const char* op, const std::function<void()>& f) {
    const std::string text = said(f);
    CHECK_MESSAGE(text.find("index 9 at position (1, 2, 1)") != std::string::npos, op, ": ", text);
  };
  expect("gather", [&] { gather(x, 0, index); });
  expect("gather", [&] { gather(x, 1, index); });
  expect("gather", [&] { gather(x, 2, index); });
  expect("scatter", [&] { scatter(x, 0, index, zeros({2, 5, 3})); });
  expect("scatter_add", [&] { scatter_add(x, 2, index, zeros({2, 5, 3})); });
  CHECK(said([&] { gather(line, 0, tensor<int64_t>({0, 6, 7})); }).find("index 7 at position 2 ") != std::string::npos);
  CHECK(said([&] { index_select(line, 0, tensor<int64_t>({0, -1})); }).find("index -1 at position 1 ") !=
        std::string::npos);
}

TEST_CASE("gather of lines that several tasks share, and scatter_add back") {
  const int64_t n = 50'001, lines = 2;
  std::vector<int64_t> places, expected;
  for (int64_t i = 0; i < lines * n; ++i) places.push_back(i * 7919 % n);
  const Tensor x = add(arange(int64_t{lines * n}), 5), index = from_data(places, {lines, n});
  for (int64_t i = 0; i < lines * n; ++i) expected.push_back(i / n * n + places[static_cast<std::size_t>(i)] + 5);
  const Tensor picked = gather(reshape(x, {lines, n}), 1, index);
  CHECK(picked.to_vector<int64_t>() == expected);
  CHECK(scatter_add(zeros({lines, n}, kInt64), 1, index, picked).to_vector<int64_t>() == x.to_vector<int64_t>());
}

TEST_CASE("gather and scatter_add reach every column of rows wider than a block") {
  manual_seed(14);
  const std::size_t rows = 9, columns = 700;
  const Tensor x = randn({5, 700}), source = randn({9, 700}), index = randint(0, 5, {9, 700});
  const auto values = x.to_vector<float>(), added = source.to_vector<float>();
  const auto at = index.to_vector<int64_t>();
  std::vector<float> picked, sums(5 * columns, 0.0f);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      const std::size_t place = static_cast<std::size_t>(at[i * columns + j]) * columns + j;
      picked.push_back(values[place]);
      sums[place] += added[i * columns + j];
    }
  CHECK(gather(x, 0, index).to_vector<float>() == picked);
  CHECK(scatter_add(zeros({5, 700}), 0, index, source).to_vector<float>() == sums);
}

TEST_CASE("padding: every mode across tasks, of rows, of whole slices and of outer axes alone") {
  manual_seed(5);
  const Tensor whole = randint(-50, 50, {2, 3, 40, 33, 29}, {.dtype = kFloat32});
  const auto place = [](PadMode mode, int64_t i, int64_t n) {
    if (mode == PadMode::replicate) return std::clamp<int64_t>(i, 0, n - 1);
    if (mode == PadMode::circular) return (i + n) % n;
    return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
  };
  for (const DType t : {DType::f32, DType::f64, DType::i8, DType::bf16})
    for (const PadMode mode : {PadMode::reflect, PadMode::replicate, PadMode::circular})
      for (const Shape& pads : {Shape{3, 2}, Shape{0, 0, 2, 3}, Shape{0, 0, 0, 0, 1, 2}, Shape{1, 0, 0, 4, 2, 1}}) {
        CAPTURE(name_of(t));
        CAPTURE(pads);
        const Tensor x = whole.to(t);
        Tensor expected = x;
        for (int pair = 0; 2 * pair < pads.size(); ++pair) {
          const int axis = x.dim() - 1 - pair;
          std::vector<int64_t> positions;
          for (int64_t i = -pads[2 * pair]; i < x.size(axis) + pads[2 * pair + 1]; ++i)
            positions.push_back(place(mode, i, x.size(axis)));
          expected = index_select(expected, axis, tensor<int64_t>(positions));
        }
        CHECK(test::compare(pad(x, pads, mode), expected, {.ulps = 0}).empty());
        if (t != DType::f32 && t != DType::f64) continue;
        const Tensor leaf = clone(x).requires_grad_(), g = randint(-50, 50, expected.sizes(), {.dtype = t});
        // A gradient that is recorded is composed of index_add.
        const Tensor composed = grad({pad(leaf, pads, mode)}, {leaf}, {.create_graph = true}, {g})[0];
        check_threads([&] { return grad({pad(leaf, pads, mode)}, {leaf}, {}, {g})[0]; });
        CHECK(test::compare(grad({pad(leaf, pads, mode)}, {leaf}, {}, {g})[0], detach(composed), {.ulps = 0}).empty());
      }
}

TEST_CASE("index: lists of positions across tasks, from the end, and out of range in the last") {
  manual_seed(6);
  const int64_t n = 50'000;
  const Tensor x = arange(30 * 40).reshape({30, 40}), rows = randint(-30, 30, {n}), columns = randint(-40, 40, {n});
  const auto r = rows.to_vector<int64_t>(), c = columns.to_vector<int64_t>();
  const auto read = index(x, std::vector<Index>{rows, columns}).to_vector<int64_t>();
  for (std::size_t i = 0; i < read.size(); ++i)
    REQUIRE(read[i] == (r[i] < 0 ? r[i] + 30 : r[i]) * 40 + (c[i] < 0 ? c[i] + 40 : c[i]));
  for (const int64_t wrong : {int64_t{30}, int64_t{-31}, INT64_MAX, INT64_MIN}) {
    const Tensor outside = clone(rows);
    outside(n - 1) = wrong;
    CHECK_THROWS_AS(index(x, std::vector<Index>{outside, columns}), IndexError);
  }
}

TEST_CASE("scatter_reduce: extremes of many columns in any number of threads, NaN in a source") {
  manual_seed(7);
  Tensor x = randn({50, 200}), source = randn({3000, 170});
  source(17, 5) = kNaN;
  const Tensor places = randint(0, 50, {3000, 170});
  const auto from = source.to_vector<double>(), base = x.to_vector<double>();
  const auto at = places.to_vector<int64_t>();
  for (const bool largest : {true, false})
    for (const bool include_self : {true, false}) {
      std::vector<double> expected = base;
      std::vector<bool> touched(expected.size(), include_self);
      for (std::size_t i = 0; i < from.size(); ++i) {
        const std::size_t to = static_cast<std::size_t>(at[i]) * 200 + i % 170;
        const double value = from[i], old = expected[to];
        if (!touched[to] || value != value || (largest ? value > old : value < old)) expected[to] = value;
        touched[to] = true;
      }
      const auto run = [&] {
        return scatter_reduce(x, 0, places, source, largest ? ScatterReduce::amax : ScatterReduce::amin, include_self);
      };
      CHECK(test::compare(run(), expected, {.ulps = 0}).empty());
      CHECK(isnan(run()).sum().item<int64_t>() == 1);
    }
  CHECK_THROWS_AS(scatter_reduce(x, 0, full({3, 2}, 50, {.dtype = kInt64}), source, ScatterReduce::amax), IndexError);
  CHECK_THROWS_AS(scatter_reduce(ones({50, 3}), 0, places, source, ScatterReduce::amax), ShapeError);
}
