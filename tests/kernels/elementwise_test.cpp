// Elementwise kernels: accuracy and special values on every instruction set, rounding of the 16-bit floats, transposed
// copies, random numbers.

#include "kernels/on_every_target.h"
#include "kernels/src/special_functions.h"
#include "support/comparison.h"
#include "support/tolerance.h"

#include <levin/core/generator.h>
#include <levin/core/tensor.h>
#include <levin/kernels/copy.h>
#include <levin/kernels/creation.h>
#include <levin/kernels/elementwise.h>
#include <levin/kernels/random.h>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

using namespace levin;
using namespace levin::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Stream& stream() {
  static Stream s(kCpu);
  return s;
}

Tensor run(const kernels::UnaryKernel& kernel, const Tensor& x, double p0 = 0, double p1 = 0) {
  Tensor y = empty(x.sizes(), like(x));
  kernel({y.tensor_view(), x.tensor_view(), p0, p1}, stream());
  return y;
}

Tensor copied(const Tensor& x, const Shape& sizes, const Shape& strides, int64_t offset = 0) {
  Tensor y = empty(sizes, like(x));
  kernels::copy({y.tensor_view(), alias(x, sizes, strides, offset).tensor_view()}, stream());
  return y;
}

struct MathFunction {
  const kernels::UnaryKernel& kernel;
  double (*reference)(double);
  double low, high;
  double ulps = 4;
};

const MathFunction kFunctions[] = {
    {kernels::exp, std::exp, -80, 80},
    {kernels::expm1, std::expm1, -20, 20},
    {kernels::expm1, std::expm1, -0.1, 0.1},
    {kernels::log, std::log, 0, 10},
    {kernels::log2, std::log2, 0, 10},
    {kernels::log10, std::log10, 0, 10},
    {kernels::log1p, std::log1p, -0.999, 10},
    {kernels::log1p, std::log1p, -1e-3, 1e-3},
    {kernels::sqrt, std::sqrt, 0, 100, 1},
    {kernels::rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0, 100, 2},
    {kernels::reciprocal, [](double x) { return 1 / x; }, -10, 10, 1},
    {kernels::sin, std::sin, -3, 3},
    {kernels::cos, std::cos, -1.5, 1.5},
    {kernels::tan, std::tan, -1.5, 1.5},
    {kernels::tanh, std::tanh, -10, 10},
    {kernels::tanh, std::tanh, -1e-3, 1e-3},
    {kernels::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -30, 30},
    {kernels::erf, std::erf, -5, 5},
    {kernels::erf, std::erf, -1e-3, 1e-3},
    {kernels::silu, [](double x) { return x / (1 + std::exp(-x)); }, -30, 30},
    {kernels::exp, std::exp, -104, -80},
    {kernels::exp, std::exp, 80, 90},
    {kernels::exp2, std::exp2, -150, 130},
    {kernels::expm1, std::expm1, -90, 90},
    {kernels::log1p, std::log1p, 1e3, 1e6},
    {kernels::tan, std::tan, -3e4, 3e4},
    {kernels::sinh, std::sinh, -2, 2},
    {kernels::sinh, std::sinh, -90, 90},
    {kernels::cosh, std::cosh, -90, 90},
    {kernels::asinh, std::asinh, -1e-2, 1e-2},
    {kernels::asinh, std::asinh, -100, 100},
    {kernels::acosh, std::acosh, 1, 1.1},
    {kernels::acosh, std::acosh, 1, 1000},
    {kernels::atanh, std::atanh, -1, 1},
    {kernels::atanh, std::atanh, -1e-3, 1e-3},
    {kernels::asin, std::asin, -1, 1},
    {kernels::acos, std::acos, -1, 1},
    {kernels::atan, std::atan, -20, 20},
    {kernels::atan, std::atan, -1, 1},
    {kernels::erfc, std::erfc, -4, 4},
    {kernels::erfc, std::erfc, 4, 10.1},
    {kernels::erfinv, kernels::special::erfinv, -1, 1},
    {kernels::erfinv, kernels::special::erfinv, 0.999, 1},
};

std::vector<double> sweep(double low, double high, int64_t n) {
  Generator g(5);
  std::vector<double> values(static_cast<std::size_t>(n));
  for (double& v : values) v = low + (high - low) * g.uniform();
  return values;
}

}  // namespace

TEST_CASE("short rows of every length and type are copied, into and out of parts of tensors") {
  for (const DType t : {DType::u8, DType::f16, DType::f32, DType::f64})
    for (const int64_t n :
         {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 511, 512, 513, 1023, 1024, 1025, 2048, 2049, 4095, 4096, 4097})
      for (const int64_t step : {1, 2}) {  // elements between neighbours of a row
        CAPTURE(name_of(t));
        CAPTURE(n);
        CAPTURE(step);
        const int64_t width = n * step + 3;
        std::vector<double> v;
        for (int64_t i = 0; i < 2 * 3 * width; ++i) v.push_back(static_cast<double>(i * 37 % 101));
        const Tensor x = from_data(v, {2, 3, width}, {.dtype = t}), y = zeros({2, 4, width}, like(x));
        const Shape sizes{2, 3, n}, from{3 * width, width, step}, to{4 * width, width, step};
        kernels::copy({alias(y, sizes, to, width + 1).tensor_view(), alias(x, sizes, from, 2).tensor_view()}, stream());
        const std::vector<double> result = y.to_vector<double>();
        std::vector<double> expected(result.size(), 0.0);
        for (int64_t a = 0; a < 2; ++a)
          for (int64_t b = 0; b < 3; ++b)
            for (int64_t i = 0; i < n; ++i)
              expected[static_cast<std::size_t>((4 * a + b + 1) * width + 1 + i * step)] =
                  v[static_cast<std::size_t>((3 * a + b) * width + 2 + i * step)];
        CHECK(result == expected);
      }
}

TEST_CASE("functions are within their units in the last place on every instruction set") {
  on_every_target([] {
    for (const DType t : {DType::f32, DType::f64})
      for (const MathFunction& f : kFunctions) {
        const Tensor x = from_data(sweep(f.low, f.high, 10'007), {10'007}, {.dtype = t});
        std::vector<double> expected = x.to_vector<double>();
        for (double& v : expected) v = f.reference(v);
        const std::string wrong = compare(run(f.kernel, x), expected, {.ulps = f.ulps});
        CHECK_MESSAGE(wrong.empty(), fmt::format("{} {}: {}", f.kernel.name(), name_of(t), wrong));
      }
  });
}

TEST_CASE("functions are correct at zero, infinity and NaN") {
  struct Special {
    const kernels::UnaryKernel& kernel;
    std::vector<double> x, y;
  };
  const Special table[] = {
      {kernels::exp, {0, -0.0, kInf, -kInf, kNan, -1000, 1000}, {1, 1, kInf, 0, kNan, 0, kInf}},
      {kernels::expm1, {0, kInf, -kInf, kNan, 1000}, {0, kInf, -1, kNan, kInf}},
      {kernels::log, {0, -0.0, kInf, -kInf, kNan, -1, 1}, {-kInf, -kInf, kInf, kNan, kNan, kNan, 0}},
      {kernels::log2, {0, kInf, kNan, -1}, {-kInf, kInf, kNan, kNan}},
      {kernels::log10, {0, kInf, kNan, -1}, {-kInf, kInf, kNan, kNan}},
      {kernels::log1p, {-1, 0, kInf, -2, kNan}, {-kInf, 0, kInf, kNan, kNan}},
      {kernels::sqrt, {0, kInf, -1, kNan}, {0, kInf, kNan, kNan}},
      {kernels::rsqrt, {0, kInf}, {kInf, 0}},
      {kernels::reciprocal, {0, kInf, -kInf}, {kInf, 0, 0}},
      {kernels::sin, {kInf, kNan, 1e6, 0}, {kNan, kNan, std::sin(1e6), 0}},
      {kernels::cos, {kInf, kNan, 1e6, 0}, {kNan, kNan, std::cos(1e6), 1}},
      {kernels::tanh, {kInf, -kInf, kNan, 0, 100}, {1, -1, kNan, 0, 1}},
      {kernels::sigmoid, {kInf, -kInf, kNan, 0}, {1, 0, kNan, 0.5}},
      {kernels::exp2, {kInf, -kInf, kNan, 0, 10, -2000, 2000}, {kInf, 0, kNan, 1, 1024, 0, kInf}},
      {kernels::tan, {kInf, kNan, 1e6, 0}, {kNan, kNan, std::tan(1e6), 0}},
      {kernels::sinh, {kInf, -kInf, kNan, 0, 1000}, {kInf, -kInf, kNan, 0, kInf}},
      {kernels::cosh, {kInf, -kInf, kNan, 0, 1000}, {kInf, kInf, kNan, 1, kInf}},
      {kernels::asinh, {kInf, -kInf, kNan, 0, -1e30}, {kInf, -kInf, kNan, 0, std::asinh(-1e30)}},
      {kernels::acosh, {kInf, -kInf, kNan, 1, 0.5, -3, 1e30}, {kInf, kNan, kNan, 0, kNan, kNan, std::acosh(1e30)}},
      {kernels::atanh, {1, -1, kNan, 0, 1.5, kInf}, {kInf, -kInf, kNan, 0, kNan, kNan}},
      {kernels::asin, {1, -1, kNan, 0, 1.5}, {std::asin(1), std::asin(-1), kNan, 0, kNan}},
      {kernels::acos, {1, -1, kNan, 0, -1.5}, {0, std::acos(-1), kNan, std::acos(0), kNan}},
      {kernels::atan, {kInf, -kInf, kNan, 0}, {std::atan(kInf), std::atan(-kInf), kNan, 0}},
      {kernels::erfc, {kInf, -kInf, kNan, 0, 40, -40}, {0, 2, kNan, 1, 0, 2}},
      {kernels::erfinv, {1, -1, kNan, 0, 1.5, -kInf}, {kInf, -kInf, kNan, 0, kNan, kNan}},
      {kernels::erf, {kInf, -kInf, kNan, 0, 10}, {1, -1, kNan, 0, 1}},
      {kernels::relu, {kInf, -kInf, kNan, 0, -1}, {kInf, 0, kNan, 0, 0}},
      {kernels::gelu, {kInf, kNan, 0, 50, -50}, {kInf, kNan, 0, 50, 0}},
      {kernels::gelu_tanh, {kInf, kNan, 0, 50, -50}, {kInf, kNan, 0, 50, 0}},
      {kernels::abs, {-kInf, kNan, -0.0}, {kInf, kNan, 0}},
      {kernels::sign, {kNan, -kInf, 0, kInf}, {0, -1, 0, 1}},
      {kernels::floor, {-0.5, 1.5, kInf, kNan}, {-1, 1, kInf, kNan}},
      {kernels::ceil, {-0.5, 1.5, -kInf}, {0, 2, -kInf}},
      {kernels::round, {0.5, 1.5, 2.5, -0.5, -1.5}, {0, 2, 2, 0, -2}},
      {kernels::trunc, {-1.9, 1.9, kNan}, {-1, 1, kNan}}};
  on_every_target([&] {
    for (const DType t : {DType::f32, DType::f64})
      for (const Special& s : table) {
        const Tensor x = from_data(s.x, {static_cast<int64_t>(s.x.size())}, {.dtype = t});
        const std::string wrong = compare(run(s.kernel, x), s.y, {.ulps = 4});
        CHECK_MESSAGE(wrong.empty(), fmt::format("{} {}: {}", s.kernel.name(), name_of(t), wrong));
      }
  });
}

TEST_CASE("erfinv inverts erfc near its ends") {
  for (double distance = 1e-3; distance >= 0x1p-53; distance /= 3) {
    const double x = 1 - distance, y = kernels::special::erfinv(x);
    CHECK(std::erfc(y) == test::approx(1 - x, {.relative = 2e-14}));
    CHECK(kernels::special::erfinv(-x) == -y);
  }
}

TEST_CASE("functions keep the sign of zero on every instruction set") {
  on_every_target([&] {
    for (const DType t : {DType::f32, DType::f64})
      for (const kernels::UnaryKernel* f : {&kernels::expm1, &kernels::log1p, &kernels::sin, &kernels::tan,
                                            &kernels::sinh, &kernels::asinh, &kernels::atanh, &kernels::asin,
                                            &kernels::atan, &kernels::tanh, &kernels::erf, &kernels::erfinv}) {
        CAPTURE(f->name());
        const auto y = run(*f, tensor<double>({0.0, -0.0}).to(t)).to_vector<double>();
        CHECK(y[0] == 0);
        CHECK(y[1] == 0);
        CHECK_FALSE(std::signbit(y[0]));
        CHECK(std::signbit(y[1]));
      }
  });
}

TEST_CASE("functions of two values: magnitudes, special values and exact remainders on every instruction set") {
  const double values[] = {0.0, -0.0, 1.0, -1.0, 0.3, -7.5, 1e-30, -1e30, 3.0, 1e-39, 16777217.0, kInf, -kInf, kNan};
  std::vector<double> a, b;
  for (const double u : values)
    for (const double v : values) a.push_back(u), b.push_back(v);
  for (const double v : sweep(-30, 30, 2000)) a.push_back(v), b.push_back(a[a.size() / 2 - 1] * 0.37 + 0.01);
  for (int i = 1; i < 200; ++i) a.push_back(0.1 * i), b.push_back(0.1);  // quotients that round to whole numbers
  struct Pair {
    const kernels::BinaryKernel& kernel;
    double (*reference)(double, double);
    double ulps;
  };
  const auto remainder = [](double x, double y) {
    const double m = std::fmod(x, y);
    return m != 0 && (m < 0) != (y < 0) ? m + y : m;
  };
  const Pair table[] = {{kernels::atan2, std::atan2, 4}, {kernels::hypot, std::hypot, 4},
                        {kernels::remainder, remainder, 0.51}};
  on_every_target([&] {
    for (const DType t : {DType::f32, DType::f64}) {
      const auto n = static_cast<int64_t>(a.size());
      const Tensor x = from_data(a, {n}, {.dtype = t}), y = from_data(b, {n}, {.dtype = t});
      const auto u = x.to_vector<double>(), v = y.to_vector<double>();
      for (const Pair& p : table) {
        Tensor z = empty({n}, {.dtype = t});
        p.kernel({z.tensor_view(), x.tensor_view(), y.tensor_view(), t}, stream());
        std::vector<double> expected;
        for (std::size_t i = 0; i < u.size(); ++i) expected.push_back(p.reference(u[i], v[i]));
        const std::string wrong = compare(z, expected, {.ulps = p.ulps});
        CHECK_MESSAGE(wrong.empty(), fmt::format("{} {}: {}", p.kernel.name(), name_of(t), wrong));
        for (std::size_t i = 0; i < u.size(); ++i)
          if (expected[i] == 0) CHECK(std::signbit(z.to_vector<double>()[i]) == std::signbit(expected[i]));
      }
    }
  });
}

TEST_CASE("clamp keeps NaN, and its upper bound wins") {
  const Tensor x = tensor<double>({-5.0, 0.25, 9.0, kNan});
  CHECK(compare(run(kernels::clamp, x, 0, 1), std::vector<double>{0, 0.25, 1, kNan}, {.ulps = 0}).empty());
  CHECK(compare(run(kernels::clamp, x, 3, 2), std::vector<double>{2, 2, 2, kNan}, {.ulps = 0}).empty());
}

TEST_CASE("maximum and minimum propagate NaN from either operand") {
  const Tensor a = tensor<double>({1.0, kNan, 2.0}), b = tensor<double>({3.0, 1.0, kNan});
  for (const auto* kernel : {&kernels::maximum, &kernels::minimum}) {
    Tensor y = empty({3}, like(a));
    (*kernel)({y.tensor_view(), a.tensor_view(), b.tensor_view(), DType::f64}, stream());
    const auto v = y.to_vector<double>();
    CHECK(v[0] == (kernel == &kernels::maximum ? 3.0 : 1.0));
    CHECK(std::isnan(v[1]));
    CHECK(std::isnan(v[2]));
  }
}

TEST_CASE("every 16-bit float survives the conversion to f32 and back on every instruction set") {
  std::vector<Half> halves(65536);
  std::vector<BFloat16> bfloats(65536);
  for (std::uint32_t i = 0; i < 65536; ++i) {
    halves[i] = Half::from_bits(static_cast<std::uint16_t>(i));
    bfloats[i] = BFloat16::from_bits(static_cast<std::uint16_t>(i));
  }
  const auto round_trip = [](const Tensor& x) {
    Tensor wide = empty(x.sizes(), {.dtype = DType::f32}), back = empty(x.sizes(), like(x));
    kernels::copy({wide.tensor_view(), x.tensor_view()}, stream());
    kernels::copy({back.tensor_view(), wide.tensor_view()}, stream());
    int wrong = 0;
    const auto* before = static_cast<const std::uint16_t*>(x.raw_data());
    const auto* after = static_cast<const std::uint16_t*>(back.raw_data());
    const float* middle = wide.data<float>();
    for (int64_t i = 0; i < x.numel(); ++i) wrong += before[i] != after[i] && !std::isnan(middle[i]);
    return wrong;
  };
  on_every_target([&] {
    CHECK(round_trip(from_data(halves, {65536})) == 0);
    CHECK(round_trip(from_data(bfloats, {65536})) == 0);
  });
}

TEST_CASE("conversion of f32 to 16 bits rounds to even") {
  const std::vector<float> x = {1.0f + 0x1p-11f, 1.0f + 3 * 0x1p-11f, 65519.0f, 65520.0f, 1e-8f, 0x1p-25f, -0x1.8p-24f};
  on_every_target([&] {
    Tensor y = empty({7}, {.dtype = DType::f16});
    kernels::copy({y.tensor_view(), from_data(x, {7}).tensor_view()}, stream());
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(y.data<Half>()[i].bits == Half(x[i]).bits);
    CHECK(y.to_vector<double>()[0] == 1.0);
    CHECK(y.to_vector<double>()[1] == 1.0 + 0x1p-9);
    CHECK(y.to_vector<double>()[3] == kInf);
  });
}

TEST_CASE("transposed copies of every element size") {
  on_every_target([] {
    for (const DType t : {DType::u8, DType::bf16, DType::i32, DType::f64})
      for (const auto& [rows, columns] :
           {std::pair<int64_t, int64_t>{1, 7}, {3, 200}, {64, 64}, {65, 127}, {130, 66}}) {
        Tensor x = empty({2, rows, columns}, {.dtype = t});
        auto* bytes = static_cast<std::uint8_t*>(x.raw_data());
        for (int64_t i = 0; i < x.numel() * size_of(t); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
        const Tensor y = copied(x, {2, columns, rows}, {rows * columns, 1, columns});
        int64_t wrong = 0;
        const int64_t size = size_of(t);
        for (int64_t b = 0; b < 2; ++b)
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < columns; ++c)
              wrong += std::memcmp(bytes + ((b * rows + r) * columns + c) * size,
                                   static_cast<std::uint8_t*>(y.raw_data()) + ((b * columns + c) * rows + r) * size,
                                   static_cast<std::size_t>(size)) != 0;
        CHECK_MESSAGE(wrong == 0, fmt::format("{} {} x {}", name_of(t), rows, columns));
      }
  });
}

TEST_CASE("results may be written into strided memory, and over an operand") {
  const std::vector<double> values = sweep(-1, 1, 60);
  Tensor memory = from_data(values, {60});
  const Tensor column = alias(memory, {10}, {6}, 2);  // every sixth
  kernels::neg({column.tensor_view(), column.tensor_view()}, stream());
  const auto after = memory.to_vector<double>();
  for (std::size_t i = 0; i < 60; ++i) CHECK(after[i] == (i % 6 == 2 ? -values[i] : values[i]));

  const Tensor half = alias(memory, {5, 6}, {6, 1}, 0), row = alias(memory, {6}, {1}, 54);
  kernels::mul({half.tensor_view(), half.tensor_view(), row.tensor_view(), DType::f64}, stream());
  const auto product = memory.to_vector<double>();
  for (std::size_t i = 0; i < 60; ++i) CHECK(product[i] == (i < 30 ? after[i] * after[54 + i % 6] : after[i]));
}

TEST_CASE("operands of other types are converted on the fly") {
  const Tensor a = tensor<int64_t>({1, 2, 3}), b = tensor({0.5f, 0.25f, -1.0f});
  Tensor y = empty({3}, {.dtype = DType::f64});
  kernels::add({y.tensor_view(), a.tensor_view(), b.tensor_view(), DType::f64, 2.0}, stream());
  CHECK(y.to_vector<double>() == std::vector<double>{2.0, 2.5, 1.0});
  Tensor less = empty({3}, {.dtype = kBool});
  kernels::lt({less.tensor_view(), b.tensor_view(), TensorView::number(0.3, DType::f32), DType::f32}, stream());
  CHECK(less.to_vector<int>() == std::vector<int>{0, 1, 1});
}

TEST_CASE("a type without a row is refused by name") {
  Tensor y = empty({2}, {.dtype = kInt64});
  CHECK_THROWS_WITH_AS(kernels::exp({y.tensor_view(), y.tensor_view()}, stream()),
                       "[exp] int64 values are not accepted; convert them with x.to(kFloat32).", DTypeError);
}

TEST_CASE("random words are Philox's on every instruction set") {
  on_every_target([] {
    Tensor u = empty({1031}, {.dtype = DType::f32});
    const GeneratorState state{0x123456789abcdef0ull, 0xfffffffdull};  // the counter carries into its upper half
    kernels::uniform({u.tensor_view(), state, 0.0, 1.0}, stream());
    int wrong = 0;
    for (std::size_t i = 0; i < 1031; ++i)
      wrong += u.data<float>()[i] != uniform24(philox(state.seed, state.offset + i / 4)[i % 4]);
    CHECK(wrong == 0);
  });
}

TEST_CASE("random numbers have the moments of their distributions") {
  // The bounds are five standard deviations of the sample's moment.
  constexpr int64_t n = 200'000;
  const double root = std::sqrt(static_cast<double>(n));
  const auto moments = [](const Tensor& t) {
    double mean = 0, square = 0;
    for (const double v : t.to_vector<double>()) mean += v, square += v * v;
    mean /= n;
    return std::pair{mean, square / n - mean * mean};
  };
  for (const DType t : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    Tensor x = empty({n}, {.dtype = t});
    const double eps = epsilon(t);
    kernels::uniform({x.tensor_view(), {9, 0}, -1.0, 3.0}, stream());
    auto [mean, variance] = moments(x);
    CHECK(std::abs(mean - 1) < 5 * std::sqrt(4.0 / 3.0) / root + 4 * eps);
    CHECK(std::abs(variance - 4.0 / 3.0) < 5 * 1.2 / root + 4 * eps);
    kernels::normal({x.tensor_view(), {9, 0}, 2.0, 0.5}, stream());
    std::tie(mean, variance) = moments(x);
    CHECK(std::abs(mean - 2) < 5 * 0.5 / root + 4 * eps);
    CHECK(std::abs(variance - 0.25) < 5 * 0.36 / root + 4 * eps);
  }
  Tensor x = empty({n}), y = empty({n});
  kernels::fill({x.tensor_view(), TensorView::number(1.0, DType::f32)}, stream());
  kernels::dropout({y.tensor_view(), x.tensor_view(), {4, 0}, 0.2}, stream());
  CHECK(std::abs(moments(y).first - 1) < 5 * 0.5 / root);
  for (const float v : y.to_vector<float>()) REQUIRE((v == 0.0f || v == 1.25f));
}
