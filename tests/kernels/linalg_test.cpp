// Factorizations by what defines them: products give the matrix back, factors are orthonormal or triangular, and values
// known in closed form come out; for sizes around the blocks, graded, singular, huge and tiny matrices.

#include "kernels/on_every_target.h"
#include "support/comparison.h"

#include <levin/kernels/linalg/factorizations.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace levin;
namespace factor = levin::kernels::linalg;
using std::int64_t;

namespace {

template <class T>
struct Dense {
  int64_t rows, columns;
  std::vector<T> v = std::vector<T>(static_cast<std::size_t>(rows * columns));

  T& operator()(int64_t i, int64_t j) { return v[static_cast<std::size_t>(i * columns + j)]; }
  T operator()(int64_t i, int64_t j) const { return v[static_cast<std::size_t>(i * columns + j)]; }
};

template <class T>
Dense<T> random_matrix(int64_t rows, int64_t columns, unsigned seed = 1) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  Dense<T> a{rows, columns};
  for (T& x : a.v) x = static_cast<T>(normal(engine));
  return a;
}

template <class T>
Dense<T> symmetric_matrix(int64_t n) {
  Dense<T> a = random_matrix<T>(n, n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < i; ++j) a(j, i) = a(i, j);
  return a;
}

/// max |A - sum over k of L(i, k) R(k, j)|, in double; 0 without elements.
template <class T, class L, class R>
double distance(const Dense<T>& a, int64_t terms, const L& left, const R& right) {
  test::Largest worst;
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < terms; ++k) sum += static_cast<double>(left(i, k)) * static_cast<double>(right(k, j));
      worst.add(std::abs(static_cast<double>(a(i, j)) - sum));
    }
  }
  return a.v.empty() ? 0 : worst.value();
}

template <class T>
Dense<T> identity(int64_t n) {
  Dense<T> a{n, n};
  for (int64_t i = 0; i < n; ++i) a(i, i) = T(1);
  return a;
}

/// The distance of the columns of q from orthonormal ones.
template <class T>
double skewness(const Dense<T>& q) {
  return distance(
      identity<T>(q.columns), q.rows, [&](int64_t i, int64_t k) { return q(k, i); }, q);
}

template <class T>
double largest(const Dense<T>& a) {
  double most = 0;
  for (const T x : a.v) most = std::abs(static_cast<double>(x)) > most ? std::abs(static_cast<double>(x)) : most;
  return most;
}

template <class T>
double bound(int64_t n) {
  return static_cast<double>(std::numeric_limits<T>::epsilon()) * 8 * (2 + std::sqrt(static_cast<double>(n)));
}

template <class T>
void check_eigh(const Dense<T>& a) {
  const int64_t n = a.rows;
  Dense<T> v{n, n};
  std::vector<T> w(static_cast<std::size_t>(n));
  REQUIRE(factor::eigh(a.v.data(), n, w.data(), v.v.data()));
  const double size = largest(a);
  INFO("n = " << n << ", largest element " << size);
  CHECK(std::is_sorted(w.begin(), w.end()));
  CHECK(skewness(v) <= bound<T>(n));
  const auto scaled = [&](int64_t k, int64_t j) {
    return static_cast<double>(w[static_cast<std::size_t>(k)]) * static_cast<double>(v(j, k));
  };
  CHECK(distance(a, n, v, scaled) <= bound<T>(n) * size * std::sqrt(static_cast<double>(n)));
}

template <class T>
std::vector<T> check_svd(const Dense<T>& a) {
  const int64_t m = a.rows, n = a.columns, k = std::min(m, n);
  Dense<T> u{m, k}, vh{k, n};
  std::vector<T> s(static_cast<std::size_t>(k));
  REQUIRE(factor::svd(a.v.data(), m, n, u.v.data(), s.data(), vh.v.data()));
  const double size = largest(a);
  INFO(m << " x " << n << ", largest element " << size);
  CHECK(std::is_sorted(s.rbegin(), s.rend()));
  if (k > 0) CHECK(s.back() >= T(0));
  CHECK(skewness(u) <= bound<T>(m));
  Dense<T> v{n, k};
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < k; ++j) v(i, j) = vh(j, i);
  CHECK(skewness(v) <= bound<T>(n));
  const auto scaled = [&](int64_t i, int64_t j) {
    return static_cast<double>(s[static_cast<std::size_t>(i)]) * static_cast<double>(vh(i, j));
  };
  CHECK(distance(a, k, u, scaled) <= bound<T>(m + n) * size * std::sqrt(static_cast<double>(m + n)));
  return s;
}

template <class T>
void check_qr(const Dense<T>& a) {
  const int64_t m = a.rows, n = a.columns, k = std::min(m, n);
  Dense<T> q{m, k}, r{k, n};
  factor::qr(a.v.data(), m, n, q.v.data(), r.v.data());
  INFO(m << " x " << n);
  CHECK(skewness(q) <= bound<T>(m));
  CHECK(distance(a, k, q, r) <= bound<T>(m) * largest(a) * std::sqrt(static_cast<double>(m)));
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < i; ++j) CHECK(r(i, j) == T(0));
}

const int64_t kSizes[] = {0, 1, 2, 3, 5, 31, 32, 33, 63, 64, 65, 100, 130};

}  // namespace

TEST_CASE_TEMPLATE("eigh: V diag(w) V^T is A, V is orthonormal and w ascends", T, float, double) {
  test::on_every_target([] {
    for (const int64_t n : kSizes) check_eigh(symmetric_matrix<T>(n));
  });
  check_eigh(identity<T>(40));
  check_eigh(Dense<T>{7, 7});
  for (const double scale : {1e-30, 1e30, 1e36, 1e-40}) {  // squares, or the values, leave float's normal range
    Dense<T> a = symmetric_matrix<T>(33);
    for (T& x : a.v) x *= static_cast<T>(scale);
    check_eigh(a);
  }
}

TEST_CASE_TEMPLATE("eigh: the second difference has the eigenvalues 2 - 2 cos(pi k / (n + 1))", T, float, double) {
  const int64_t n = 200;
  Dense<T> a{n, n}, v{n, n};
  for (int64_t i = 0; i < n; ++i) {
    a(i, i) = T(2);
    if (i > 0) a(i, i - 1) = T(-1);  // the upper triangle is not read
  }
  std::vector<T> w(static_cast<std::size_t>(n));
  REQUIRE(factor::eigh(a.v.data(), n, w.data(), v.v.data()));
  for (int64_t k = 0; k < n; ++k) {
    const double expected = 2 - 2 * std::cos(std::acos(-1.0) * static_cast<double>(k + 1) / (n + 1));
    CHECK(std::abs(static_cast<double>(w[static_cast<std::size_t>(k)]) - expected) <= 4 * bound<T>(1));
  }
}

namespace {

/// The tridiagonal matrix of which f(i) gives the diagonal element and g(i) the one between i and i + 1.
template <class T, class F, class G>
Dense<T> tridiagonal(int64_t n, F f, G g) {
  Dense<T> a{n, n};
  for (int64_t i = 0; i < n; ++i) a(i, i) = static_cast<T>(f(i));
  for (int64_t i = 0; i + 1 < n; ++i) a(i + 1, i) = a(i, i + 1) = static_cast<T>(g(i));
  return a;
}

}  // namespace

// Divide and conquer leaves out what equal values and missing couplings decide alone.
TEST_CASE_TEMPLATE("eigh: eigenvalues that are equal or close to each other, and halves without a coupling", T, float,
                   double) {
  const auto distance_from_middle = [](int64_t i) { return std::abs(i % 21 - 10); };  // Wilkinson's W21, repeated
  for (const double sign : {1.0, -1.0})
    check_eigh(tridiagonal<T>(
        131, [](int64_t i) { return std::abs(i - 65); }, [&](int64_t) { return sign; }));
  for (const double glue : {0.0, 1e-14, 1e-7, 1e-3, -1e-3})
    check_eigh(tridiagonal<T>(126, distance_from_middle, [&](int64_t i) { return i % 21 == 20 ? glue : 1.0; }));
  for (const double step : {0.0, 1e-12, 1e-6})
    check_eigh(tridiagonal<T>(
        100, [&](int64_t i) { return 1 + step * static_cast<double>(i % 7); },
        [&](int64_t i) { return i % 3 == 0 ? 0.0 : -step; }));
  check_eigh(identity<T>(150));
  Dense<T> ones{100, 100};
  std::fill(ones.v.begin(), ones.v.end(), T(1));
  check_eigh(ones);
  Dense<T> q{96, 96}, unused{96, 96}, few{96, 96};  // the eigenvalues 0, 1 and 2 in equal numbers
  factor::qr(random_matrix<T>(96, 96).v.data(), 96, 96, q.v.data(), unused.v.data());
  for (int64_t i = 0; i < 96; ++i)
    for (int64_t j = 0; j < 96; ++j)
      for (int64_t k = 0; k < 96; ++k) few(i, j) += static_cast<T>(k % 3) * q(i, k) * q(j, k);
  check_eigh(few);
}

TEST_CASE("eigh: a graded tridiagonal matrix keeps its small eigenvalues, whichever end they are at") {
  const int64_t n = 12;
  std::vector<double> smallest;
  for (const bool reversed : {false, true}) {
    Dense<double> a{n, n}, v{n, n};
    const auto at = [&](int64_t i, int64_t j) -> double& { return reversed ? a(n - 1 - i, n - 1 - j) : a(i, j); };
    for (int64_t i = 0; i < n; ++i) at(i, i) = std::pow(10.0, -2.0 * static_cast<double>(i));
    for (int64_t i = 0; i + 1 < n; ++i)
      at(i, i + 1) = at(i + 1, i) = 0.1 * std::pow(10.0, -2.0 * static_cast<double>(i) - 1);
    std::vector<double> w(static_cast<std::size_t>(n));
    REQUIRE(factor::eigh(a.v.data(), n, w.data(), v.v.data()));
    CHECK(w.back() == test::approx(1.0, {.relative = 1e-3}));
    smallest.push_back(w.front());
  }
  CHECK(smallest[0] ==
        test::approx(0.99e-22, {.relative = 1e-2}));  // D (I + E) D with |E| of 0.1: about d_n (1 - 0.1^2)
  CHECK(smallest[1] == test::approx(smallest[0], {.relative = 1e-10}));
}

TEST_CASE_TEMPLATE("svd: U diag(s) V^H is A, U and V are orthonormal and s descends", T, float, double) {
  test::on_every_target([] {
    for (const int64_t n : kSizes) check_svd(random_matrix<T>(n, n));
  });
  for (const auto& [m, n] : {std::pair{70, 33}, {33, 70}, {200, 3}, {3, 200}, {0, 4}, {4, 0}, {1, 9}})
    check_svd(random_matrix<T>(m, n));
  for (const double scale : {1e-30, 1e30}) {
    Dense<T> a = random_matrix<T>(40, 33);
    for (T& x : a.v) x *= static_cast<T>(scale);
    check_svd(a);
  }
}

TEST_CASE_TEMPLATE("svd: matrices without full rank have singular values of 0", T, float, double) {
  check_svd(Dense<T>{6, 4});
  check_svd(identity<T>(37));
  Dense<T> twice = random_matrix<T>(50, 40);  // columns 20 to 39 repeat the first ones
  for (int64_t i = 0; i < 50; ++i)
    for (int64_t j = 0; j < 20; ++j) twice(i, j + 20) = twice(i, j);
  const std::vector<T> s = check_svd(twice);
  CHECK(s[19] > T(0.1));
  for (std::size_t i = 20; i < 40; ++i) CHECK(std::abs(static_cast<double>(s[i])) <= 40 * bound<T>(40));
  Dense<T> shift{20, 20};  // bidiagonal with a diagonal of zeros
  for (int64_t i = 0; i + 1 < 20; ++i) shift(i, i + 1) = T(1);
  const std::vector<T> ones = check_svd(shift);
  CHECK(ones[18] == test::approx(1.0, {.relative = 1e-6}));
  CHECK(ones[19] == T(0));
}

TEST_CASE_TEMPLATE("eigh and svd refuse values that are not finite", T, float, double) {
  for (const T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()}) {
    Dense<T> a = symmetric_matrix<T>(5), u{5, 5}, v{5, 5};
    a(3, 2) = bad;
    T values[5];
    CHECK_FALSE(factor::eigh(a.v.data(), 5, values, v.v.data()));
    CHECK_FALSE(factor::svd(a.v.data(), 5, 5, u.v.data(), values, v.v.data()));
  }
}

TEST_CASE_TEMPLATE("qr: Q R is A, Q is orthonormal and R upper triangular", T, float, double) {
  test::on_every_target([] {
    for (const int64_t n : kSizes) check_qr(random_matrix<T>(n, n));
  });
  for (const auto& [m, n] : {std::pair{70, 33}, {33, 70}, {200, 3}, {3, 200}, {0, 4}, {4, 0}})
    check_qr(random_matrix<T>(m, n));
  check_qr(Dense<T>{5, 3});
}

TEST_CASE_TEMPLATE("cholesky: L L^T is A; matrices that are not positive definite are refused", T, float, double) {
  for (const int64_t n : kSizes) {
    const Dense<T> b = random_matrix<T>(n, n);
    Dense<T> a{n, n};
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        for (int64_t k = 0; k < n; ++k) a(i, j) += b(i, k) * b(j, k) + (i == j ? T(1) : T(0));
    Dense<T> l = a;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = i + 1; j < n; ++j) l(i, j) = std::numeric_limits<T>::quiet_NaN();  // is not read
    REQUIRE(factor::cholesky(l.v.data(), n));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = i + 1; j < n; ++j) CHECK(l(i, j) == T(0));
    CHECK(distance(a, n, l, [&](int64_t k, int64_t j) { return l(j, k); }) <= bound<T>(n) * largest(a));
    if (n == 0) continue;
    a(n - 1, n - 1) = T(-1);
    CHECK_FALSE(factor::cholesky(a.v.data(), n));
  }
}

TEST_CASE_TEMPLATE("lu and triangular solutions solve A X = B", T, float, double) {
  for (const int64_t n : kSizes) {
    for (const int64_t columns : {int64_t{1}, int64_t{35}}) {
      const Dense<T> a = random_matrix<T>(n, n), x = random_matrix<T>(n, columns, 2);
      Dense<T> b{n, columns}, factors = a;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < columns; ++j)
          for (int64_t k = 0; k < n; ++k) b(i, j) += a(i, k) * x(k, j);
      std::vector<int64_t> pivots(static_cast<std::size_t>(n));
      REQUIRE(factor::lu(factors.v.data(), n, pivots.data()));
      Dense<T> y = b;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t other = pivots[static_cast<std::size_t>(i)];
        REQUIRE(other >= i);
        for (int64_t j = 0; j < columns && other != i; ++j) std::swap(y(i, j), y(other, j));
      }
      factor::solve_triangular(factors.v.data(), n, y.v.data(), columns, false, true);
      factor::solve_triangular(factors.v.data(), n, y.v.data(), columns, true, false);
      // A y = b is what LU promises for any matrix; y = x would depend on its condition.
      CHECK(distance(b, n, a, y) <=
            bound<T>(n) * 8 * (1 + largest(a)) * (1 + largest(y)) * (1 + static_cast<double>(n)));
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < i; ++j) CHECK(std::abs(factors(i, j)) <= T(1));
    }
  }
  Dense<T> singular{40, 40};
  std::vector<int64_t> pivots(40);
  CHECK_FALSE(factor::lu(singular.v.data(), 40, pivots.data()));
}
