// Products of few rows: in place, as dot products, and transposed.
#include "gemm_problem.h"
#include "on_every_target.h"

using namespace levin;
using namespace levin::kernels::cpu;
using namespace levin::test;

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

namespace {

/// Shapes at which C^T is computed (with AVX2), and neighbours at which it is not: ragged rows, several chunks of k,
/// more tasks than one along both axes.
const Problem kFewRowsByColumn[] = {
    {.m = 16, .n = 70, .k = 130},   {.m = 15, .n = 71, .k = 131},  {.m = 24, .n = 300, .k = 200},
    {.m = 32, .n = 512, .k = 400},  {.m = 31, .n = 165, .k = 900}, {.m = 64, .n = 515, .k = 784},
    {.m = 144, .n = 750, .k = 801}, {.m = 1, .n = 70, .k = 130},   {.m = 48, .n = 190, .k = 1030}};

}  // namespace

TEST_CASE_TEMPLATE("gemm: few rows by contiguous columns of B, with alpha, beta, bias and a transposed A", T, float,
                   double) {
  test::on_every_target([] {
    for (Problem p : kFewRowsByColumn) {
      p.transpose_b = true;
      check<T>(p);
      p.bias = true;
      check<T>(p);
      p.transpose_a = true;
      check<T>(p);
      p.alpha = -0.75;
      check<T>(p);
      p.beta = 0.5;
      check<T>(p);
      p.alpha = 1;
      check<T>(p);
      p.transpose_a = p.bias = false;
      check<T>(p);
    }
  });
  check<T>({.m = 16, .n = 70, .k = 130, .batch = 3, .transpose_b = true});
}

TEST_CASE_TEMPLATE(
    "gemm: few rows by contiguous columns of B have the bits of contiguous rows, with any number of threads", T, float,
    double) {
  const ThreadsGuard guard;
  for (Problem p : kFewRowsByColumn) {
    if (p.m <= 8) continue;  // dot products, which add in another order
    p.bias = true;
    Product<T> rows(p);
    p.transpose_b = true;
    Product<T> columns(p);
    for (int64_t q = 0; q < p.k; ++q)
      for (int64_t j = 0; j < p.n; ++j) columns.b[Product<T>::at(j * p.k + q)] = rows.b[Product<T>::at(q * p.n + j)];
    set_num_threads(1);
    gemm(rows.args);
    for (const int threads : {1, 3, 16}) {
      set_num_threads(threads);
      columns.c = columns.c_before;
      gemm(columns.args);
      CHECK_MESSAGE(std::memcmp(columns.c.data(), rows.c.data(), rows.c.size() * sizeof(T)) == 0, describe(p));
    }
  }
}
