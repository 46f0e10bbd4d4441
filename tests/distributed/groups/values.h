#pragma once
// The ranks' inputs in tests of collectives, and the expected results.

#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>
#include <levin/distributed/process_group.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace levin::test::values {

using distributed::ReduceOp;

// Returns element i of rank r: small integers, exact in every dtype.
inline double value(int rank, int64_t i) { return static_cast<double>((i * 5 + rank * 3 + 1) % 4); }

inline Tensor filled(int rank, int64_t n, DType dtype, int64_t from = 0) {
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(value(rank, from + i));
  return from_data(v, {n}).to(dtype);
}

inline double reduced(ReduceOp op, int size, int64_t i) {
  double result = value(0, i);
  for (int r = 1; r < size; ++r) {
    const double v = value(r, i);
    if (op == ReduceOp::min) result = std::min(result, v);
    if (op == ReduceOp::max) result = std::max(result, v);
    if (op == ReduceOp::product) result *= v;
    if (op == ReduceOp::sum || op == ReduceOp::avg) result += v;
  }
  return op == ReduceOp::avg ? result / size : result;
}

// Compares first, because doctest's assertions from several threads interleave their output.
inline void check_equal(const Tensor& t, const std::function<double(int64_t)>& expected, double tolerance = 0) {
  const auto got = t.to_vector<double>();
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double want = expected(static_cast<int64_t>(i));
    if (!(std::abs(got[i] - want) <= tolerance * std::abs(want))) {
      FAIL_CHECK("place " << i << " of " << got.size() << ": " << got[i] << ", not " << want);
      return;
    }
  }
  CHECK(true);
}

inline constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::product};
inline constexpr DType kTypes[] = {kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kInt16, kInt8, kUInt8};

}  // namespace levin::test::values
