#include "cases/cases.h"

#include <levin/autograd/ops.h>

#include <cmath>
#include <numbers>

namespace levin::test {

namespace {

/// A case of a creation function: `make` in the type under test, `value` of element i.
OpCase from_nothing(std::string name, const Shape& sizes, std::vector<DType> dtypes,
                    std::function<Tensor(TensorOptions)> make, std::function<double(std::size_t)> value,
                    Tolerance tolerance = {.ulps = 1}) {
  OpCase c;
  c.name = std::move(name);
  // The input only supplies type and device.
  c.samples = {{.inputs = {{.sizes = {1}, .differentiable = false, .rearrange = false}}}};
  c.op = [make](const Tensors& x) -> Tensors { return {make(like(x[0]))}; };
  c.reference = [sizes, value](const Tensors&) -> Tensors {
    std::vector<double> v(static_cast<std::size_t>(sizes.numel()));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = value(i);
    return {from_data(v, sizes)};
  };
  c.dtypes = std::move(dtypes);
  c.layouts = {Layout::contiguous};
  c.tolerance = tolerance;
  c.differentiable = false;
  return c;
}

std::uint32_t word(std::uint64_t seed, std::size_t i) { return philox(seed, i / 4)[i % 4]; }
double pair_of_words(std::uint64_t seed, std::size_t i) { return uniform53(word(seed, 2 * i), word(seed, 2 * i + 1)); }

double normal_of(double u, double v, bool first) {
  const double radius = std::sqrt(-2 * std::log(1 - u)), angle = 2 * std::numbers::pi * v;
  return radius * (first ? std::cos(angle) : std::sin(angle));
}

constexpr std::uint64_t kSeed = 3;
constexpr int64_t kMany = 70'001;

template <class F>
auto seeded(F f) {
  return [f](TensorOptions o) {
    Generator g(kSeed);
    o.generator = &g;
    return f(o);
  };
}

std::vector<OpCase> random_cases() {
  const auto uniforms = [](const TensorOptions& o) { return rand({kMany}, o); };
  const auto normals = [](const TensorOptions& o) { return randn({kMany}, o); };
  const auto integers_of = [](const TensorOptions& o) { return randint(-5, 90, {kMany}, o); };
  OpCase chances = from_nothing(
      "bernoulli", {kMany}, kFloatTypes,
      [](const TensorOptions& t) {
        Generator g(kSeed);
        return bernoulli(full({kMany}, 0.25, t), &g);
      },
      [](std::size_t i) { return static_cast<double>(word(kSeed, i) >> 8) * 0x1p-24 < 0.25 ? 1.0 : 0.0; });
  chances.errors = {{"[bernoulli] the probability 2 is not in [0, 1]", [] { bernoulli(full({2}, 2.0)); }}};
  OpCase whole = from_nothing("randint", {kMany}, {kNumericTypes.begin(), kNumericTypes.end() - 1}, seeded(integers_of),
                              [](std::size_t i) {
    const auto bits = (static_cast<std::uint64_t>(word(kSeed, 2 * i)) << 32) | word(kSeed, 2 * i + 1);
    return std::floor(static_cast<double>(bits >> 11) * 0x1p-53 * 95) - 5;
  });
  whole.errors = {{"[randint] no integer lies in [3, 3)", [] { randint(3, 3, {2}); }}};
  return {from_nothing("rand", {kMany}, {DType::f32}, seeded(uniforms),
                       [](std::size_t i) { return static_cast<double>(word(kSeed, i) >> 8) * 0x1p-24; }),
          from_nothing("rand_f64", {kMany}, {DType::f64}, seeded(uniforms),
                       [](std::size_t i) { return pair_of_words(kSeed, i); }),
          from_nothing("rand_f16", {kMany}, {DType::f16}, seeded(uniforms),
                       [](std::size_t i) { return static_cast<double>(word(kSeed, i) >> 21) * 0x1p-11; }),
          from_nothing("randn", {kMany}, {DType::f32}, seeded(normals), [](std::size_t i) {
            const std::size_t k = i / 2 * 2;
            return normal_of(uniform24(word(kSeed, k)), uniform24(word(kSeed, k + 1)), i % 2 == 0);
          }, {.ulps = 4, .scale = 8}),
          from_nothing("randn_f64", {kMany}, {DType::f64}, seeded(normals), [](std::size_t i) {
            const std::size_t k = i / 2 * 2;
            return normal_of(pair_of_words(kSeed, k), pair_of_words(kSeed, k + 1), i % 2 == 0);
          }, {.ulps = 4, .scale = 8}),
          whole, chances};
}

}  // namespace

std::vector<OpCase> creation_cases() {
  std::vector<OpCase> list = {
      from_nothing(
          "zeros", {3, 5}, kAllTypes,
          [](const TensorOptions& t) {
            return zeros({3, 5}, t);
          },
          [](std::size_t) { return 0; }),
      from_nothing(
          "ones", {70'000}, kAllTypes, [](const TensorOptions& t) { return ones({70'000}, t); },
          [](std::size_t) { return 1; }),
      from_nothing(
          "full", {0, 3}, kNumericTypes,
          [](const TensorOptions& t) {
            return full({0, 3}, 7, t);
          },
          [](std::size_t) { return 7; }),
      from_nothing(
          "arange", {31}, kNumericTypes, [](const TensorOptions& t) { return arange(3, 96, 3, t); },
          [](std::size_t i) { return 3 + 3 * static_cast<double>(i); }),
      from_nothing(
          "arange_down", {5}, kWideFloats, [](const TensorOptions& t) { return arange(1.0, -0.25, -0.25, t); },
          [](std::size_t i) { return 1 - 0.25 * static_cast<double>(i); }),
      from_nothing(
          "linspace", {33}, kFloatTypes, [](const TensorOptions& t) { return linspace(-1, 3, 33, t); },
          [](std::size_t i) { return -1 + static_cast<double>(i) / 8; }),
      from_nothing(
          "eye", {3, 5}, kAllTypes, [](const TensorOptions& t) { return eye(3, 5, t); },
          [](std::size_t i) { return i / 5 == i % 5 ? 1 : 0; })};
  list[3].errors = {{"[arange] steps of -1 never lead from 0 to 5", [] { arange(0, 5, -1); }},
                    {"[arange] steps of 0 never lead", [] { arange(0, 5, 0); }}};
  list[5].errors = {{"[linspace] -1 steps", [] { linspace(0, 1, -1); }}};
  for (OpCase& c : random_cases()) list.push_back(std::move(c));
  return list;
}

}  // namespace levin::test
