// Reductions, softmax, losses and norms, kernel by kernel, for inputs beyond the operation cases.

#include "support/comparison.h"
#include "support/tolerance.h"

#include <levin/core/generator.h>
#include <levin/core/parallel.h>
#include <levin/core/tensor.h>
#include <levin/kernels/loss.h>
#include <levin/kernels/norm.h>
#include <levin/kernels/reduce.h>
#include <levin/kernels/scan.h>
#include <levin/kernels/softmax.h>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace levin;
using namespace levin::test;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Stream& stream() {
  static Stream s(kCpu);
  return s;
}

Tensor random(const Shape& sizes, DType dtype, double low, double high, std::uint64_t seed = 1) {
  Generator g(seed);
  std::vector<double> v(static_cast<std::size_t>(sizes.numel()));
  for (double& x : v) x = low + (high - low) * g.uniform();
  return from_data(v, sizes, {.dtype = dtype});
}

Shape kept_sizes(const Shape& sizes, const Shape& axes) {
  Shape kept = sizes;
  for (const int64_t a : axes) kept[static_cast<int>(a)] = 1;
  return kept;
}

/// Returns sums by simple loops over a view of any strides, exact to double.
std::vector<double> plain_sums(const TensorView& x, const Shape& kept, const double* values) {
  std::vector<long double> sums(static_cast<std::size_t>(kept.numel()), 0.0L);
  for (int64_t i = 0; i < x.numel(); ++i) {
    int64_t rest = i, from = 0, to = 0, step = 1;
    for (int d = x.dim() - 1; d >= 0; --d) {
      const int64_t k = rest % x.size(d);
      rest /= x.size(d);
      from += k * x.stride(d);
      if (kept[d] != 1) to += k * step;
      step *= kept[d];
    }
    sums[static_cast<std::size_t>(to)] += static_cast<long double>(values[from]);
  }
  std::vector<double> rounded;
  for (const long double s : sums) rounded.push_back(static_cast<double>(s));
  return rounded;
}

struct Geometry {
  Shape sizes, strides, axes;
};

/// Contiguous, transposed, sliced and expanded views on memory of at most 400,000 elements.
const std::vector<Geometry> kGeometries = {
    {{1}, {1}, {0}},
    {{31}, {1}, {0}},
    {{33}, {3}, {0}},
    {{100003}, {1}, {0}},
    {{7, 13}, {13, 1}, {0, 1}},
    {{7, 13}, {1, 7}, {0}},
    {{7, 13}, {1, 7}, {1}},
    {{7, 13}, {30, 2}, {0}},
    {{7, 13}, {30, 2}, {1}},
    {{7, 13}, {0, 1}, {0}},
    {{7, 13}, {1, 0}, {1}},
    {{311, 523}, {523, 1}, {0}},
    {{311, 523}, {523, 1}, {1}},
    {{311, 523}, {1, 311}, {0}},
    {{311, 523}, {1, 311}, {1}},
    {{5, 7, 11, 13}, {1001, 143, 13, 1}, {0, 2, 3}},
    {{5, 7, 11, 13}, {1001, 143, 13, 1}, {1}},
    {{5, 7, 11, 13}, {1001, 143, 13, 1}, {0, 2}},
    {{5, 7, 11, 13}, {7, 1, 455, 35}, {0, 2, 3}},
    {{3, 1, 40009}, {40009, 40009, 1}, {2}},
    {{2, 3, 50021}, {150063, 50021, 1}, {0, 2}},
    {{4099, 3}, {3, 1}, {0}},
    {{2, 2, 2, 2, 2, 2, 2, 2}, {128, 64, 32, 16, 8, 4, 2, 1}, {0, 2, 4, 6}},
    {{70001}, {5}, {0}},                         // a strided row in pieces
    {{3, 40009}, {133000, 3}, {1}},              // several of them
    {{600, 5, 4}, {1, 2400, 600}, {2}},          // a result with permuted axes, in tiles
    {{600, 2, 100}, {1, 60000, 600}, {2}},       // in splits
    {{100, 3, 7}, {7, 700, 1}, {2}},             // in batches
};

TensorView view_of(const Tensor& memory, const Geometry& g) {
  TensorView v = memory.tensor_view();
  v.sizes = g.sizes;
  v.strides = g.strides;
  return v;
}

Tensor sum_of(const TensorView& x, const Shape& axes, DType out) {
  Tensor y = empty(kept_sizes(x.sizes, axes), {.dtype = out});
  kernels::sum({y.tensor_view(), x}, stream());
  return y;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.raw_data(), b.raw_data(), static_cast<std::size_t>(a.numel() * size_of(a.dtype()))) == 0;
}

/// Runs `f`, which returns tensors, with 1, 2, 3 and 7 threads and compares the bits.
template <class F>
void check_threads(F&& f) {
  const int before = num_threads();
  std::vector<Tensor> first;
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    const std::vector<Tensor> results = f();
    if (threads == 1) first = results;
    for (std::size_t i = 0; i < results.size(); ++i) CHECK(same_bits(results[i], first[i]));
  }
  set_num_threads(before);
}

}  // namespace

TEST_CASE("float sums are the double sums rounded once, in every geometry") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    const Tensor memory = random({400000}, dtype, 0.5, 2.0);
    const std::vector<double> values = memory.to_vector<double>();
    for (const Geometry& g : kGeometries) {
      const TensorView x = view_of(memory, g);
      const Tensor y = sum_of(x, g.axes, dtype);
      const int64_t terms = x.numel() / y.numel();
      // In f64 every addition rounds; the other types accumulate with enough precision until the end.
      const double growth = std::sqrt(static_cast<double>(terms)) / 4;
      const Tolerance tolerance{.ulps = 1, .scale = dtype == DType::f64 ? growth : 0.0};
      const std::string wrong = compare(y, plain_sums(x, kept_sizes(g.sizes, g.axes), values.data()), tolerance, terms);
      CHECK_MESSAGE(wrong.empty(), to_string(g.sizes), " ", to_string(g.strides), " over ", to_string(g.axes), " ",
                    name_of(dtype), ": ", wrong);
    }
  }
}

TEST_CASE("small terms between large ones are not lost") {
  std::vector<double> v;
  for (int i = 0; i < 3000; ++i) v.insert(v.end(), {1e8, 0.5, -1e8});
  const Tensor x = from_data(v, {9000}, {.dtype = kFloat32});
  CHECK(sum_of(x.tensor_view(), {0}, kFloat32).item<float>() == 1500.0f);
}

TEST_CASE("integers and bool sum to int64, which wraps") {
  const Tensor x = from_data<std::int8_t>({100, 100, 100, -1}, {4});
  CHECK(sum_of(x.tensor_view(), {0}, kInt64).item<int64_t>() == 299);
  const Tensor b = from_data({1.0, 0.0, 1.0}, {3}, {.dtype = kBool});
  CHECK(sum_of(b.tensor_view(), {0}, kInt64).item<int64_t>() == 2);
  const Tensor big = from_data<int64_t>({std::numeric_limits<int64_t>::max(), 1}, {2});
  CHECK(sum_of(big.tensor_view(), {0}, kInt64).item<int64_t>() == std::numeric_limits<int64_t>::min());
}

TEST_CASE("empty reductions give the neutral element") {
  const Tensor x = empty({0, 3}), y = empty({1, 3}), flags = empty({1, 3}, {.dtype = kBool});
  kernels::sum({y.tensor_view(), x.tensor_view()}, stream());
  CHECK(y.to_vector<double>() == std::vector<double>(3, 0.0));
  kernels::prod({y.tensor_view(), x.tensor_view()}, stream());
  CHECK(y.to_vector<double>() == std::vector<double>(3, 1.0));
  kernels::amax({y.tensor_view(), x.tensor_view()}, stream());
  CHECK(y.to_vector<double>() == std::vector<double>(3, -kInfinity));
  kernels::all({flags.tensor_view(), x.tensor_view()}, stream());
  CHECK(flags.to_vector<int>() == std::vector<int>(3, 1));
  kernels::any({flags.tensor_view(), x.tensor_view()}, stream());
  CHECK(flags.to_vector<int>() == std::vector<int>(3, 0));
}

TEST_CASE("NaN wins in extrema wherever it is, and its first position is the index") {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16})
    for (const int64_t n : {1, 5, 31, 64, 130, 1000})
      for (const int64_t place : {int64_t{0}, n / 2, n - 1}) {
        std::vector<double> v(static_cast<std::size_t>(n), 2.0);
        v[static_cast<std::size_t>(place)] = kNan;
        v[static_cast<std::size_t>(n - 1)] = n - 1 == place ? kNan : 7.0;
        const Tensor x = from_data(v, {n}, {.dtype = dtype}), y = empty({1}, {.dtype = dtype});
        const Tensor index = empty({1}, {.dtype = kInt64});
        for (const auto* kernel : {&kernels::amax, &kernels::amin}) {
          (*kernel)({y.tensor_view(), x.tensor_view()}, stream());
          CHECK(std::isnan(y.item<double>()));
        }
        for (const auto* kernel : {&kernels::argmax, &kernels::argmin}) {
          (*kernel)({y.tensor_view(), index.tensor_view(), x.tensor_view(), 1, n, 1}, stream());
          CHECK(std::isnan(y.item<double>()));
          CHECK(index.item<int64_t>() == place);
        }
      }
}

TEST_CASE("the first of equal extrema is the index") {
  for (const int64_t n : {3, 63, 64, 65, 200})
    for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::bf16}) {
      std::vector<double> v(static_cast<std::size_t>(n), 1.0);
      v[static_cast<std::size_t>(n - 2)] = v[static_cast<std::size_t>(n - 1)] = 3.0;
      const Tensor x = from_data(v, {n}, {.dtype = dtype}), index = empty({1}, {.dtype = kInt64});
      kernels::argmax({{}, index.tensor_view(), x.tensor_view(), 1, n, 1}, stream());
      CHECK(index.item<int64_t>() == n - 2);
      kernels::argmin({{}, index.tensor_view(), x.tensor_view(), 1, n, 1}, stream());
      CHECK(index.item<int64_t>() == 0);
    }
}

TEST_CASE("a reversed cumulative sum is the sum of what follows") {
  const Tensor x = from_data({1.0, 2.0, 3.0, 4.0}, {4}), y = empty({4}, like(x));
  kernels::cumsum({y.tensor_view(), x.tensor_view(), 1, 4, 1, true}, stream());
  CHECK(y.to_vector<double>() == std::vector<double>{10, 9, 7, 4});
}

TEST_CASE("softmax at extremes: large logits, infinities, NaN") {
  const std::vector<double> rows = {1e30, 1e30, -1e30, 0, -kInfinity, 1, 2, -kInfinity, -kInfinity, -kInfinity,
                                    -kInfinity, -kInfinity, 0, kNan, 0, 0, kInfinity, 0, 0, 0};
  for (const DType dtype : {DType::f32, DType::f64})
    for (const bool by_columns : {false, true}) {
      std::vector<double> v = rows;
      if (by_columns)
        for (int r = 0; r < 5; ++r)
          for (int c = 0; c < 4; ++c)
            v[static_cast<std::size_t>(c * 5 + r)] = rows[static_cast<std::size_t>(r * 4 + c)];
      const Tensor x = from_data(v, {20}, {.dtype = dtype}), y = empty({20}, {.dtype = dtype});
      const int64_t outer = by_columns ? 1 : 5, inner = by_columns ? 5 : 1;
      kernels::softmax({y.tensor_view(), x.tensor_view(), outer, 4, inner}, stream());
      const std::vector<double> out = y.to_vector<double>();
      const auto at = [&](int r, int c) { return out[static_cast<std::size_t>(by_columns ? c * 5 + r : r * 4 + c)]; };
      CHECK(at(0, 0) == 0.5);
      CHECK(at(0, 2) == 0.0);
      CHECK(at(1, 0) == 0.0);
      CHECK(at(1, 1) + at(1, 2) == approx(1.0, {.relative = 4 * epsilon(dtype)}));
      for (const int r : {2, 3, 4}) {
        bool any_nan = false;
        for (int c = 0; c < 4; ++c) any_nan |= std::isnan(at(r, c));
        CHECK(any_nan);
      }
    }
}

TEST_CASE("cross-entropy is accurate for logits that are large and far apart") {
  const Tensor x = from_data({1000.0, 1001.0, -1000.0, 5e4, -5e4, 0.0}, {2, 3}, {.dtype = kFloat32});
  const Tensor target = from_data<int64_t>({0, 0}, {2}), lse = empty({2, 2}, {.dtype = kFloat64}),
               norm = empty({}, {.dtype = kFloat64});
  const Tensor loss = empty({2}), g = from_data({1.0f, 1.0f}, {2}), dx = empty({2, 3});
  kernels::CrossEntropyArgs args;
  args.x = x.tensor_view();
  args.target = target.tensor_view();
  args.lse = lse.tensor_view();
  args.norm = norm.tensor_view();
  args.out = loss.tensor_view();
  args.batch = 2;
  args.classes = 3;
  args.reduction = kernels::LossReduction::none;
  kernels::cross_entropy(args, stream());
  const double expected = 1.0 + std::log1p(std::exp(-1.0)), p = 1.0 / (1.0 + std::exp(1.0));
  CHECK(compare(loss, std::vector<double>{expected, 0.0}, {.ulps = 1}) == "");
  args.g = g.tensor_view();
  args.dx = dx.tensor_view();
  kernels::cross_entropy_backward(args, stream());
  CHECK(compare(dx, std::vector<double>{p - 1, 1 - p, 0, 0, 0, 0}, {.ulps = 4}) == "");
}

TEST_CASE("batch norm is accurate for a large mean") {
  const int64_t batch = 64, channels = 5;
  for (const int64_t spatial : {1, 9}) {
    const Tensor noise = random({batch, channels, spatial}, kFloat32, 0, 1);
    std::vector<double> v = noise.to_vector<double>();
    for (double& x : v) x = static_cast<double>(static_cast<float>(x + 4096.0));
    const Tensor x = from_data(v, noise.sizes(), {.dtype = kFloat32}), y = empty(x.sizes());
    const Tensor mean = empty({channels}), rstd = empty({channels});
    kernels::BatchNormArgs args{y.tensor_view(),    x.tensor_view(),   {}, {}, {}, {},
                                mean.tensor_view(), rstd.tensor_view()};
    args.batch = batch;
    args.channels = channels;
    args.spatial = spatial;
    kernels::batch_norm(args, stream());
    std::vector<double> expected;
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0.0, squares = 0.0;
      const double n = static_cast<double>(batch * spatial);
      for (int64_t i = 0; i < x.numel(); ++i)
        if (i / spatial % channels == c) sum += v[static_cast<std::size_t>(i)];
      for (int64_t i = 0; i < x.numel(); ++i)
        if (i / spatial % channels == c) squares += std::pow(v[static_cast<std::size_t>(i)] - sum / n, 2);
      expected.push_back(1.0 / std::sqrt(squares / n + 1e-5));
    }
    CHECK(compare(rstd, expected, {.ulps = 2}) == "");
  }
}

TEST_CASE("batch norm in evaluation returns its statistics also for empty inputs") {
  const Tensor nothing = empty({0, 3, 4}), running_mean = from_data({1.0F, 2.0F, 3.0F}, {3}), running_var = ones({3});
  const Tensor mean = full({3}, 7.0), rstd = full({3}, 7.0);
  kernels::BatchNormArgs args{nothing.tensor_view(),      nothing.tensor_view(),     {}, {},
                              running_mean.tensor_view(), running_var.tensor_view(), mean.tensor_view(),
                              rstd.tensor_view()};
  args.batch = 0, args.channels = 3, args.spatial = 4;
  args.eps = 3.0, args.training = false;
  kernels::batch_norm(args, stream());
  CHECK(mean.to_vector<float>() == std::vector<float>{1, 2, 3});
  CHECK(rstd.to_vector<float>() == std::vector<float>{0.5F, 0.5F, 0.5F});
}

TEST_CASE("the same bits from 1, 2, 3 and 7 threads") {
  const Tensor memory = random({400000}, kFloat32, -1, 1);
  for (const Geometry& g : kGeometries)
    check_threads([&] { return std::vector<Tensor>{sum_of(view_of(memory, g), g.axes, kFloat32)}; });

  const int64_t rows = 401, columns = 509;
  const Tensor x = random({rows, columns}, kFloat32, -3, 3), g = random({rows, columns}, kFloat32, -1, 1, 2);
  const Tensor weight = random({columns}, kFloat32, 0.5, 2, 3);
  check_threads([&] {
    const Tensor y = empty(x.sizes()), mean = empty({rows}), rstd = empty({rows}), dx = empty(x.sizes());
    const Tensor dweight = empty({columns}), dbias = empty({columns}), soft = empty(x.sizes());
    kernels::layer_norm({y.tensor_view(),
                         x.tensor_view(),
                         weight.tensor_view(),
                         {},
                         mean.tensor_view(),
                         rstd.tensor_view(),
                         rows,
                         columns},
                        stream());
    kernels::layer_norm_backward(
        {dx.tensor_view(), dweight.tensor_view(), dbias.tensor_view(), g.tensor_view(), x.tensor_view(),
         weight.tensor_view(), mean.tensor_view(), rstd.tensor_view(), rows, columns},
        stream());
    kernels::softmax({soft.tensor_view(), x.tensor_view(), 1, rows, columns}, stream());
    return std::vector<Tensor>{y, mean, rstd, dx, dweight, dbias, soft};
  });
}

TEST_CASE("norms of other powers, along rows and columns, in one piece and in many") {
  const Tensor memory = random({400000}, kFloat32, -2, 2);
  const std::vector<double> values = memory.to_vector<double>();
  for (const double p : {0.0, 0.5, 1.0, 2.0, 3.0, 4.0}) {
    std::vector<double> powers;
    for (const double v : values) powers.push_back(p == 0.0 ? v != 0 : std::pow(std::abs(v), p));
    for (const Geometry& g : kGeometries) {
      const TensorView x = view_of(memory, g);
      std::vector<double> expected = plain_sums(x, kept_sizes(g.sizes, g.axes), powers.data());
      if (p != 0.0)
        for (double& v : expected) v = std::pow(v, 1.0 / p);
      const Tensor y = empty(kept_sizes(g.sizes, g.axes));
      kernels::norm({y.tensor_view(), x, p}, stream());
      const std::string wrong = compare(y, expected, {.ulps = 2});
      CHECK_MESSAGE(wrong.empty(), "p ", p, ": ", to_string(g.sizes), " ", to_string(g.strides), " over ",
                    to_string(g.axes), ": ", wrong);
    }
  }
}

TEST_CASE("softmax is accurate wherever the maximum of a row is, and if all values are far below zero") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const int64_t n : {1, 3, 17, 64, 70, 150})
      for (const int64_t place : {int64_t{0}, n / 3, n / 2, n - 1})
        for (const auto& [outer, inner] : {std::pair<int64_t, int64_t>{2, 1}, {2, 70}, {1, 3}}) {
          // All are 1000 below zero, and one is 200 above the others.
          const Tensor x = full({outer, n, inner}, -1200.0, {.dtype = dtype}), y = empty(x.sizes(), like(x));
          x.select(1, static_cast<int>(place)).fill_(-1000.0);
          for (const bool log : {false, true}) {
            (log ? kernels::log_softmax : kernels::softmax)({y.tensor_view(), x.tensor_view(), outer, n, inner},
                                                            stream());
            const auto values = y.to_vector<double>();
            std::int64_t wrong = 0;
            for (std::size_t i = 0; i < values.size(); ++i) {
              const bool top = static_cast<int64_t>(i) / inner % n == place;
              const double wanted = log ? (top ? 0.0 : -200.0) : top ? 1.0 : 0.0;
              wrong += !(std::abs(values[i] - wanted) <= 1e-30);
            }
            CHECK_MESSAGE(wrong == 0, name_of(dtype), " ", outer, " x ", n, " x ", inner, ", the largest at ", place,
                          log ? ", logarithm" : "");
          }
        }
}
