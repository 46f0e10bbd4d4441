// GEMM on raw pointers compared with simple loops in double precision (for integers in wrapping 64-bit arithmetic).
#include "kernels/cpu/gemm/ladder.h"
#include "kernels/on_every_target.h"
#include "support/comparison.h"

#include <levin/core/parallel.h>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace levin;
using namespace levin::kernels::cpu;
using levin::test::approx;
using levin::test::Largest;

/// Restores the number of threads.
struct ThreadsGuard {
  int before = num_threads();
  ~ThreadsGuard() { set_num_threads(before); }
};

struct Problem {
  int64_t m, n, k, batch = 1;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
  bool bias = false;
  int64_t spread = 1;  // factor of all strides of A and B; with 2 there is no unit stride
  int64_t gap = 3;     // elements between the rows of C
};

std::string describe(const Problem& p) {
  return std::to_string(p.batch) + " x (" + std::to_string(p.m) + ", " + std::to_string(p.n) + ", " +
         std::to_string(p.k) + ") " + (p.transpose_a ? "A^T " : "") + (p.transpose_b ? "B^T " : "") + "spread " +
         std::to_string(p.spread);
}

template <class T>
T value(std::mt19937_64& random) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random());
  } else {
    return T(static_cast<float>(static_cast<double>(random() >> 40) / (1 << 23) - 1.0));
  }
}

/// Operands, with guards around C. run() computes; worst() returns the largest error relative to the allowed one.
template <class T>
struct Product {
  static constexpr int64_t guard = 32;
  using Exact = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

  Problem p;
  std::vector<T> a, b, c, c_before, bias;
  GemmArgs<T> args;

  explicit Product(const Problem& problem) : p(problem) {
    std::mt19937_64 random(static_cast<std::uint64_t>(p.m * 10007 + p.n * 101 + p.k));
    const auto fill = [&random](std::vector<T>& v, int64_t size) {
      for (int64_t i = 0; i < size; ++i) v.push_back(value<T>(random));
    };
    const int64_t a_size = p.m * p.k * p.spread, b_size = p.k * p.n * p.spread, c_rs = p.n + p.gap;
    fill(a, a_size * p.batch);
    fill(b, b_size * p.batch);
    fill(c, p.batch * p.m * c_rs + 2 * guard);
    fill(bias, p.n);
    if (p.beta == 0.0 && !std::is_integral_v<T>) {  // C must not be read
      for (int64_t i = 0; i < p.batch * p.m; ++i) {
        for (int64_t j = 0; j < p.n; ++j) c[at(i * c_rs + j + guard)] = T(std::numeric_limits<float>::quiet_NaN());
      }
    }
    c_before = c;
    args = {.m = p.m,
            .n = p.n,
            .k = p.k,
            .a = a.data(),
            .a_rs = (p.transpose_a ? 1 : p.k) * p.spread,
            .a_cs = (p.transpose_a ? p.m : 1) * p.spread,
            .b = b.data(),
            .b_rs = (p.transpose_b ? 1 : p.n) * p.spread,
            .b_cs = (p.transpose_b ? p.k : 1) * p.spread,
            .c = c.data() + guard,
            .c_rs = c_rs,
            .alpha = GemmScalar<T>(p.alpha),
            .beta = GemmScalar<T>(p.beta),
            .bias_n = p.bias ? bias.data() : nullptr,
            .batch = p.batch,
            .a_bs = a_size,
            .b_bs = b_size,
            .c_bs = p.m * c_rs};
  }

  static std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }
  static Exact exact(T x) { return static_cast<Exact>(x); }

  /// Returns the worst error relative to gamma_(k + 3) times the sum of magnitudes; above 1 is wrong. Returns infinity
  /// if a guard changed.
  double worst() const {
    const auto inside = [this](int64_t i) {
      const int64_t position = i - guard;
      return position >= 0 && position < p.batch * args.c_bs && position % args.c_rs < p.n;
    };
    Largest result;
    for (int64_t i = 0; i < static_cast<int64_t>(c.size()); ++i) {
      if (!inside(i)) {
        if (std::memcmp(&c[at(i)], &c_before[at(i)], sizeof(T)) != 0) return std::numeric_limits<double>::infinity();
        result.add(0);
        continue;
      }
      const int64_t row = (i - guard) / args.c_rs, item = row / p.m;
      result.add(error(item, row % p.m, (i - guard) % args.c_rs, i));
    }
    return result.value();
  }

  double error(int64_t item, int64_t i, int64_t j, int64_t position) const {
    Exact sum = 0;
    double magnitude = 0;
    const T *from_a = args.a + item * args.a_bs + i * args.a_rs, *from_b = args.b + item * args.b_bs + j * args.b_cs;
    const int64_t k = p.k, a_step = args.a_cs, b_step = args.b_rs;
    for (int64_t q = 0; q < k; ++q, from_a += a_step, from_b += b_step) {
      const auto x = static_cast<Exact>(*from_a), y = static_cast<Exact>(*from_b);
      sum += x * y;
      magnitude += std::abs(static_cast<double>(x) * static_cast<double>(y));
    }
    sum *= exact(T(args.alpha));
    magnitude *= std::abs(p.alpha);
    const auto add = [&](Exact term) {
      sum += term;
      magnitude += std::abs(static_cast<double>(term));
    };
    if (p.beta != 0.0) add(exact(T(args.beta)) * exact(c_before[at(position)]));
    if (p.bias) add(exact(bias[at(j)]));
    const T got = c[at(position)];
    if constexpr (std::is_integral_v<T>) {
      return got == static_cast<T>(sum) ? 0.0 : 2.0;
    } else {
      constexpr bool half = sizeof(T) == 2;
      const double unit = half ? 0x1p-24 : static_cast<double>(std::numeric_limits<GemmScalar<T>>::epsilon()) / 2;
      const double rounding = half ? (std::is_same_v<T, Half> ? 0x1p-11 : 0x1p-8) * std::abs(sum) + 0x1p-25 : 0.0;
      const double allowed = static_cast<double>(p.k + 4) * unit * magnitude + rounding;
      const double off = std::abs(static_cast<double>(got) - sum);
      return off == 0 ? 0.0 : off / allowed;
    }
  }
};

template <class T>
void check(const Problem& p) {
  Product<T> product(p);
  gemm(product.args);
  CHECK_MESSAGE(product.worst() <= 1.0, describe(p));
}

const int64_t kSizes[] = {1, 2, 5, 13, 14, 15, 31, 33, 61};

}  // namespace

TEST_CASE_TEMPLATE("gemm: sizes around the tile's edges, all transposes", T, float, double) {
  for (const int64_t m : kSizes) {
    for (const int64_t n : kSizes) {
      for (const int64_t k : {int64_t{1}, int64_t{4}, int64_t{7}, int64_t{33}}) {
        const bool ta = (m + n) % 2 == 0, tb = (n + k) % 2 == 0;
        check<T>({.m = m, .n = n, .k = k, .transpose_a = ta, .transpose_b = tb});
        check<T>(
            {.m = m, .n = n, .k = k, .transpose_a = !ta, .transpose_b = tb, .alpha = 0.5, .beta = -2, .bias = true});
      }
    }
  }
}

TEST_CASE_TEMPLATE("gemm: large shapes span several blocks", T, float, double) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      check<T>({.m = 197, .n = 301, .k = 811, .transpose_a = ta, .transpose_b = tb, .beta = 1, .bias = true});
      check<T>({.m = 401, .n = 67, .k = 129, .transpose_a = ta, .transpose_b = tb});
      check<T>({.m = 3, .n = 1027, .k = 65, .transpose_a = ta, .transpose_b = tb, .bias = true});
      check<T>({.m = 700, .n = 1, .k = 65, .transpose_a = ta, .transpose_b = tb});
    }
  }
}

TEST_CASE_TEMPLATE("gemm: batches, and no unit stride", T, float, double) {
  check<T>({.m = 31, .n = 33, .k = 17, .batch = 7, .transpose_b = true, .bias = true});
  check<T>({.m = 128, .n = 32, .k = 128, .batch = 5, .beta = 1});
  check<T>({.m = 37, .n = 41, .k = 43, .batch = 2, .transpose_a = true, .spread = 2});
  check<T>({.m = 300, .n = 310, .k = 320, .batch = 2, .transpose_b = true});
  check<T>({.m = 21, .n = 64, .k = 19, .batch = 3, .transpose_a = true, .transpose_b = true, .spread = 3});
}

TEST_CASE("gemm: stride 0 broadcasts A, B and the batch") {
  Product<float> product({.m = 19, .n = 45, .k = 23, .batch = 3});
  GemmArgs<float>& g = product.args;
  SUBCASE("rows of A") { g.a_rs = 0; }
  SUBCASE("k of A") { g.a_cs = 0; }
  SUBCASE("k of B") { g.b_rs = 0; }
  SUBCASE("columns of B") { g.b_cs = 0; }
  SUBCASE("one B for the batch") { g.b_bs = 0; }
  SUBCASE("one A for the batch") { g.a_bs = 0; }
  SUBCASE("row of ones times a matrix") { g.a_rs = 0, g.a_cs = 0, g.a_bs = 0; }
  gemm(g);
  CHECK(product.worst() <= 1.0);
}

TEST_CASE("gemm: a shared B folds the batch into rows") {
  Product<float> product({.m = 21, .n = 50, .k = 30, .batch = 4, .bias = true});
  product.args.b_bs = 0;
  std::vector<float> dense(static_cast<std::size_t>(4 * 21 * 50));
  GemmArgs<float> folded = product.args;
  folded.c = dense.data();
  folded.c_rs = 50;
  folded.c_bs = 21 * 50;
  gemm(product.args);
  gemm(folded);
  CHECK(product.worst() <= 1.0);
  for (int64_t i = 0; i < 4 * 21; ++i) {
    for (int64_t j = 0; j < 50; ++j) {
      CHECK(dense[static_cast<std::size_t>(i * 50 + j)] == approx(product.args.c[i * 53 + j], {.relative = 1e-5}));
    }
  }
}

TEST_CASE_TEMPLATE("gemm: empty extents", T, float, double, Half, BFloat16, std::int64_t) {
  check<T>({.m = 5, .n = 7, .k = 0});
  check<T>({.m = 5, .n = 7, .k = 0, .beta = 2, .bias = true});
  check<T>({.m = 0, .n = 7, .k = 3});
  check<T>({.m = 5, .n = 0, .k = 3});
  check<T>({.m = 5, .n = 7, .k = 3, .batch = 0});
}

TEST_CASE_TEMPLATE("gemm: 16-bit floats accumulate in float", T, Half, BFloat16) {
  for (const int64_t k : {1, 17, 300}) {
    check<T>({.m = 33, .n = 18, .k = k, .transpose_a = true});
    check<T>({.m = 9, .n = 40, .k = k, .batch = 3, .transpose_b = true, .alpha = 0.5, .beta = 1, .bias = true});
  }
}

TEST_CASE_TEMPLATE("gemm: integers wrap", T, std::int64_t, std::int32_t, std::int16_t, std::int8_t, std::uint8_t) {
  check<T>({.m = 33, .n = 61, .k = 70, .batch = 2, .transpose_a = true, .bias = true});
  check<T>({.m = 5, .n = 600, .k = 66, .transpose_b = true, .alpha = 3, .beta = 2});
}

TEST_CASE("gemm: every rung of the ladder") {
  REQUIRE(gemm_rungs().size() == 6);
  for (const GemmRung& rung : gemm_rungs()) {
    for (const Problem& p : {Problem{.m = 61, .n = 75, .k = 43, .bias = true},
                             Problem{.m = 33, .n = 64, .k = 900, .transpose_a = true, .beta = 0.5},
                             Problem{.m = 15, .n = 130, .k = 5, .batch = 3, .transpose_b = true, .alpha = -1},
                             Problem{.m = 3, .n = 77, .k = 50, .transpose_b = true, .beta = 2, .bias = true},
                             Problem{.m = 100, .n = 150, .k = 70},
                             Problem{.m = 4, .n = 4, .k = 0, .beta = 1, .bias = true}}) {
      Product<float> product(p);
      rung.run(product.args);
      CHECK_MESSAGE(product.worst() <= 1.0, rung.name << ": " << describe(p));
    }
  }
}

TEST_CASE("gemm: the same bits with any number of threads") {
  const ThreadsGuard guard;
  for (const Problem& p :
       {Problem{.m = 257, .n = 263, .k = 1000}, Problem{.m = 128, .n = 512, .k = 784, .transpose_b = true},
        Problem{.m = 31, .n = 32, .k = 33, .batch = 48}, Problem{.m = 1, .n = 2000, .k = 700},
        Problem{.m = 3, .n = 1500, .k = 801, .transpose_b = true}, Problem{.m = 3000, .n = 1, .k = 900, .gap = 0}}) {
    set_num_threads(1);
    Product<float> first(p);
    gemm(first.args);
    for (const int threads : {2, 3, 7}) {
      set_num_threads(threads);
      Product<float> again(p);
      gemm(again.args);
      CHECK(std::memcmp(first.c.data(), again.c.data(), first.c.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE_TEMPLATE("gemm: few rows, on both sides of the heights and widths of their tiles", T, float, double) {
  test::on_every_target([] {
    for (int64_t m = 1; m <= 9; ++m) {
      for (const int64_t n : {1, 3, 16, 17, 32, 33, 49, 127, 129, 265}) {
        for (const int64_t k : {1, 7, 16, 17, 47, 70}) {
          const bool ta = (m + n + k) % 2 == 0;
          check<T>({.m = m, .n = n, .k = k, .transpose_a = ta, .transpose_b = true, .gap = (n + k) % 3});
          check<T>({.m = m, .n = n, .k = k, .transpose_a = ta, .alpha = -2, .beta = 0.5, .bias = n % 2 == 0, .gap = 0});
        }
      }
    }
  });
}

TEST_CASE_TEMPLATE("gemm: few rows over several chunks of k, and a B beyond the caches", T, float, double) {
  for (const bool tb : {false, true}) {
    check<T>({.m = 1, .n = 1100, .k = 2049, .transpose_b = tb, .beta = 2, .bias = true});
    check<T>({.m = 4, .n = 70, .k = 1601, .transpose_a = true, .transpose_b = tb, .bias = true});
    check<T>({.m = 3, .n = 33, .k = 900, .batch = 5, .transpose_b = tb, .beta = 1});
  }
}

TEST_CASE_TEMPLATE("gemm: one column, with contiguous and other rows of A and C", T, float, double) {
  for (const int64_t m : {1, 2, 9, 100, 515}) {
    for (const bool ta : {false, true}) {
      check<T>({.m = m, .n = 1, .k = 801, .transpose_a = ta, .gap = 0});
      check<T>({.m = m, .n = 1, .k = 33, .transpose_a = ta, .alpha = 3, .beta = -1, .bias = true, .gap = 0});
      check<T>({.m = m, .n = 1, .k = 17, .batch = 3, .transpose_a = ta, .beta = 2, .spread = 2, .gap = 0});
      check<T>({.m = m, .n = 1, .k = 64, .transpose_a = ta, .gap = 1});
    }
  }
}

TEST_CASE_TEMPLATE("gemm: sums of one to nine terms, whose C is written row by row or in tiles", T, float, double) {
  test::on_every_target([] {
    constexpr int64_t page = 4096 / sizeof(T);
    for (int64_t k = 1; k <= 9; ++k) {
      for (const int64_t n : {127, 129, 300}) {
        check<T>({.m = 21, .n = n, .k = k, .transpose_a = k % 2 == 0, .bias = true, .gap = 0});
        check<T>({.m = 10, .n = n, .k = k, .batch = 2, .alpha = 2, .beta = -1, .gap = 1});
      }
      check<T>({.m = 37, .n = page, .k = k, .transpose_a = true, .beta = 1, .gap = 0});
    }
  });
  check<T>({.m = 11, .n = 40'000, .k = 4, .gap = 0});
}

TEST_CASE_TEMPLATE("gemm: rows just less and just more than a page apart, ragged panels", T, float, double) {
  constexpr int64_t page = 4096 / sizeof(T);
  for (const int64_t step : {page - 1, page, page + 1}) {
    for (const bool transpose : {false, true}) {
      check<T>({.m = 45, .n = step, .k = 19, .transpose_b = transpose, .beta = 1, .bias = true});
      check<T>({.m = 45, .n = 70, .k = step, .transpose_b = transpose});
      check<T>({.m = step, .n = 70, .k = 19, .transpose_a = transpose, .transpose_b = !transpose});
    }
  }
  check<T>({.m = 200, .n = 301, .k = 100, .bias = true});
  check<T>({.m = 200, .n = 301, .k = 100, .batch = 3, .transpose_a = true, .transpose_b = true});
  for (const int64_t m : {32, 60, 140, 150})  // on both sides of ten row blocks, of each instruction set
    check<T>({.m = m, .n = 3 * page + 5, .k = 19, .beta = 1, .bias = true});
}

TEST_CASE("gemm: few rows of a B that starts or steps off the cache's lines") {
  for (const int64_t step : {1024, 1000, 1029}) {
    Product<float> product({.m = 1, .n = 65, .k = 1029, .transpose_b = true});
    product.p.k = product.args.k = step - 8;
    product.args.b += 3;
    product.args.b_cs = step;
    gemm(product.args);
    CHECK_MESSAGE(product.worst() <= 1.0, "columns ", step, " apart");
  }
}

TEST_CASE_TEMPLATE("gemm: a row has the same bits alone and among others if B's rows are contiguous", T, float,
                   double) {
  test::on_every_target([] {
    constexpr int64_t rows = 33, n = 50, k = 1013;
    Product<T> whole({.m = rows, .n = n, .k = k, .gap = 0});
    gemm(whole.args);
    for (int64_t m = 1; m <= 17; ++m) {
      std::vector<T> c(static_cast<std::size_t>(m * n));
      GemmArgs<T> g = whole.args;
      g.m = m;
      g.a += 5 * k;
      g.c = c.data();
      gemm(g);
      CHECK_MESSAGE(std::memcmp(c.data(), whole.args.c + 5 * n, c.size() * sizeof(T)) == 0, m, " rows");
    }
  });
}

TEST_CASE_TEMPLATE("gemm: few rows are dot products where B's columns are contiguous", T, float, double) {
  constexpr int64_t most = sizeof(T) == 4 ? 8 : 4;  // rows
  test::on_every_target([] {
    for (const bool transpose_a : {false, true}) {
      for (const int64_t k : {5, 64, 1013}) {
        for (int64_t m = 1; m <= 9; ++m)
          check<T>(
              {.m = m, .n = 37, .k = k, .transpose_a = transpose_a, .transpose_b = true, .beta = 0.5, .bias = true});
      }
    }
    for (const bool transpose_a : {false, true})  // one column is one row of the transposed product
      check<T>({.m = 33, .n = 1, .k = 1013, .transpose_a = transpose_a, .gap = 0});
    Product<T> all({.m = most, .n = 37, .k = 1013, .transpose_b = true, .gap = 0});
    gemm(all.args);
    for (int64_t m = 1; m < most; ++m) {
      std::vector<T> c(static_cast<std::size_t>(m * 37));
      GemmArgs<T> g = all.args;
      g.m = m;
      g.c = c.data();
      gemm(g);
      CHECK_MESSAGE(std::memcmp(c.data(), all.args.c, c.size() * sizeof(T)) == 0, m, " rows");
    }
  });
}

TEST_CASE("gemm: not-a-number and infinity pass through") {
  Product<float> product({.m = 20, .n = 40, .k = 10});
  product.a[3] = std::numeric_limits<float>::quiet_NaN();
  gemm(product.args);
  for (int64_t j = 0; j < 40; ++j) {
    CHECK(std::isnan(product.args.c[j]));
    CHECK(std::isfinite(product.args.c[product.args.c_rs + j]));
  }
}

TEST_CASE("gemm: shared packed operands that exceed their buffer") {
  // At most 768 of k are packed at a time, and 8 MiB in total, so there are several ranges of k.
  check<float>({.m = 2800, .n = 100, .k = 1600, .beta = 0.5, .bias = true});
}

TEST_CASE("gemm: expanded operands that could be read in place if their strides were not 0") {
  for (const int64_t n : {8, 16, 32, 64}) {
    Product<float> rows_of_b({.m = 5, .n = n, .k = 23});
    rows_of_b.args.b_rs = 0;
    gemm(rows_of_b.args);
    CHECK_MESSAGE(rows_of_b.worst() <= 1.0, "rows of B, n = ", n);
    Product<float> columns_of_a({.m = 40, .n = n, .k = 23});
    columns_of_a.args.a_rs = 1;
    columns_of_a.args.a_cs = 0;
    gemm(columns_of_a.args);
    CHECK_MESSAGE(columns_of_a.worst() <= 1.0, "columns of A, n = ", n);
  }
}

TEST_CASE("gemm: a batch of transposed matrices with one B is not folded into rows") {
  Product<float> product({.m = 21, .n = 50, .k = 30, .batch = 4, .transpose_a = true});
  product.args.b_bs = 0;
  gemm(product.args);
  CHECK(product.worst() <= 1.0);
}

TEST_CASE_TEMPLATE("gemm: 16-bit operands without a unit stride", T, Half, BFloat16) {
  check<T>({.m = 9, .n = 18, .k = 17, .spread = 2});
  check<T>({.m = 9, .n = 18, .k = 17, .batch = 2, .transpose_a = true, .transpose_b = true, .spread = 3});
}
