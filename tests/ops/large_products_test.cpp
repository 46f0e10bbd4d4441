// Matrix products whose operands are packed in several parts: values and gradients. Comparing all elements would take
// longer than the products, but C v = A (B v) with a random vector v in double is cheap to check.

#include "support/comparison.h"
#include "support/small_cases.h"
#include "support/tolerance.h"

#include <levin/autograd/engine.h>
#include <levin/autograd/ops.h>
#include <levin/core/generator.h>

#include <doctest/doctest.h>

#include <cmath>

using namespace levin;
using namespace levin::test;

namespace {

using Line = std::vector<double>;

/// A matrix in double, row by row.
struct Matrix {
  Line values;
  std::size_t rows, columns;
  explicit Matrix(const Tensor& t)
      : values(t.detach().to_vector<double>()),
        rows(static_cast<std::size_t>(t.size(0))),
        columns(static_cast<std::size_t>(t.size(1))) {}
};

Line operator*(const Matrix& m, const Line& v) {
  Line y(m.rows);
  for (std::size_t i = 0; i < m.rows; ++i)
    for (std::size_t j = 0; j < m.columns; ++j) y[i] += m.values[i * m.columns + j] * v[j];
  return y;
}

Line signs(int64_t n) {
  Generator g(static_cast<std::uint64_t>(n));
  Line v;
  for (int64_t i = 0; i < n; ++i) v.push_back(g.below(2) == 0 ? -1.0 : 1.0);
  return v;
}

/// Returns (rows, columns) in [-1, 1), stored as it is or transposed.
Tensor operand(int64_t rows, int64_t columns, DType dtype, bool transposed) {
  const Tensor t = transposed ? rand({columns, rows}) : rand({rows, columns});
  const Tensor values = (t * 2.0 - 1.0).to(dtype);
  return transposed ? values.t() : values;
}

/// Returns the allowed error of a row of C times signs: each element rounds once and sums `terms` products of 1/3 on
/// average, and the errors of a row have either sign.
double allowed(const Matrix& c, std::size_t row, DType dtype, int64_t terms) {
  double squares = 0;
  for (std::size_t j = 0; j < c.columns; ++j) {
    const double one = allowance({.ulps = 1, .scale = 0.05}, dtype, c.values[row * c.columns + j], terms);
    squares += one * one;
  }
  return 5 * std::sqrt(squares);
}

/// Returns the error of C = A B relative to the allowed one.
double share(const Tensor& c, const Tensor& a, const Tensor& b) {
  const Matrix left(a), right(b), product(c);
  const Line v = signs(b.size(1));
  return largest_share(product * v, left * (right * v),
                       [&](std::size_t row) { return allowed(product, row, c.dtype(), a.size(1)); });
}

void check_product(int64_t m, int64_t k, int64_t n, DType dtype, bool transposed) {
  CAPTURE(name_of(dtype));
  CAPTURE(transposed);
  manual_seed(static_cast<std::uint64_t>(m));
  const Tensor a = operand(m, k, dtype, transposed).requires_grad_(), b = operand(k, n, dtype, transposed);
  b.requires_grad_();
  const Tensor c = matmul(a, b), g = operand(m, n, dtype, transposed);
  CHECK(a.is_contiguous() != transposed);
  CHECK(g.is_contiguous() != transposed);
  CHECK(share(c, a, b) <= 1);
  const auto gradients = grad({c}, {a, b}, {}, {g});
  CHECK(share(gradients[0], g, b.t()) <= 1);
  CHECK(share(gradients[1], a.t(), g) <= 1);
}

}  // namespace

TEST_CASE("products larger than one packed part, their gradients, and those of transposed operands") {
  check_product(1499, 1501, 1493, kFloat32, false);
  if (small_cases()) return;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // with them each takes a minute
  check_product(1500, 1500, 1500, kFloat32, true);
  check_product(1500, 800, 1500, kFloat64, false);
  check_product(1500, 1500, 1500, kHalf, true);
  check_product(1500, 1500, 1500, kBFloat16, false);
#endif
}

TEST_CASE("one wrong element of a large product is detected") {
  const Tensor a = operand(700, 700, kFloat32, false), b = operand(700, 700, kFloat32, false), c = matmul(a, b);
  CHECK(share(c, a, b) <= 1);
  c[699][350].add_(0.05);  // elements are about 9
  CHECK(share(c, a, b) > 1);
}
