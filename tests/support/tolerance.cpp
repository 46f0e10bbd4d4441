#include "support/tolerance.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace levin::test {

namespace {

constexpr double kAccumulation = 4;  // see tolerance.h

double tiny(DType t) {
  switch (t) {
    case DType::f64: return std::numeric_limits<double>::denorm_min();
    case DType::f32: return static_cast<double>(std::numeric_limits<float>::denorm_min());
    case DType::f16: return 0x1p-24;
    case DType::bf16: return 0x1p-133;
    default: return 0;
  }
}

/// "[1, 0, 3]" of the i-th element in row-major order.
std::string position(int64_t i, const Shape& sizes) {
  std::vector<int64_t> index(static_cast<std::size_t>(sizes.size()));
  for (int axis = sizes.size() - 1; axis >= 0; --axis) {
    index[static_cast<std::size_t>(axis)] = i % sizes[axis];
    i /= sizes[axis];
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

/// How much of its allowance an error takes; infinite where NaN or infinity do not match.
double excess(double actual, double expected, double allowed) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return 0;
  const double error = std::abs(actual - expected);
  if (!std::isfinite(error) || allowed == 0) return std::numeric_limits<double>::infinity();
  return error / allowed;
}

}  // namespace

double epsilon(DType t) {
  switch (t) {
    case DType::f64: return 0x1p-52;
    case DType::f32: return 0x1p-23;
    case DType::f16: return 0x1p-10;
    case DType::bf16: return 0x1p-7;
    default: return 0;
  }
}

double allowance(const Tolerance& tolerance, DType t, double reference, int64_t terms) {
  const DType accumulator = t == DType::f64 || !is_floating(t) ? t : DType::f32;
  return tolerance.ulps * epsilon(t) * std::abs(reference) +
         kAccumulation * epsilon(accumulator) * tolerance.scale * static_cast<double>(terms) +
         epsilon(t) * tolerance.rounded + tiny(t);
}

std::string compare(const Tensor& actual, const std::vector<double>& expected, const Tolerance& tolerance,
                    int64_t terms) {
  if (static_cast<std::size_t>(actual.numel()) != expected.size())
    return fmt::format("has {} elements of shape {}, expected are {}", actual.numel(), to_string(actual.sizes()),
                       expected.size());
  const std::vector<double> values = actual.to_vector<double>();
  double worst = 0;
  std::size_t at = 0, wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    // A reference beyond the type's range has to overflow; converting it does just that.
    double want = expected[i];
    if (actual.dtype() == DType::f32)
      want = std::abs(want) > 3.4028235677973366e38 ? std::copysign(INFINITY, want) : want;
    if (actual.dtype() == DType::f16) want = std::abs(want) >= 65520 ? std::copysign(INFINITY, want) : want;
    const double e = excess(values[i], want, allowance(tolerance, actual.dtype(), want, terms));
    wrong += e > 1;
    if (e > worst) {
      worst = e;
      at = i;
    }
  }
  if (wrong == 0) return {};
  return fmt::format(
      "{} of {} elements differ; the worst at {} is {:.9g}, expected {:.9g}: error {:.3g}, allowed {:.3g}", wrong,
      values.size(), position(static_cast<int64_t>(at), actual.sizes()), values[at], expected[at],
      std::abs(values[at] - expected[at]), allowance(tolerance, actual.dtype(), expected[at], terms));
}

std::string compare(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance, int64_t terms) {
  if (actual.sizes() != expected.sizes())
    return fmt::format("has shape {}, expected is {}", to_string(actual.sizes()), to_string(expected.sizes()));
  return compare(actual, expected.to_vector<double>(), tolerance, terms);
}

}  // namespace levin::test
