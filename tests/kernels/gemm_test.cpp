// Products of every shape, stride and type, and the rungs of the ladder.
#include "gemm_problem.h"
#include "on_every_target.h"

using namespace levin;
using namespace levin::kernels::cpu;
using namespace levin::test;

namespace {

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
  REQUIRE(gemm_rungs().size() == 7);
  for (const GemmRung& rung : gemm_rungs()) {
    for (const Problem& p :
         {Problem{.m = 61, .n = 75, .k = 43, .bias = true},
          Problem{.m = 33, .n = 64, .k = 900, .transpose_a = true, .beta = 0.5},
          Problem{.m = 15, .n = 130, .k = 5, .batch = 3, .transpose_b = true, .alpha = -1},
          Problem{.m = 3, .n = 77, .k = 50, .transpose_b = true, .beta = 2, .bias = true},
          Problem{.m = 100, .n = 150, .k = 70}, Problem{.m = 200, .n = 250, .k = 400},
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

TEST_CASE("gemm: both sides of each limit at which an operand is packed, or the transposed product is computed") {
  test::on_every_target([] {
    for (const int64_t n : {224, 256}) check<float>({.m = 150, .n = n, .k = 64, .gap = 0});  // panels that read A
    for (const int64_t m : {256, 272})  // lines of A, 1 KiB apart and farther
      check<float>({.m = m, .n = 70, .k = 90, .transpose_a = true, .beta = 1, .gap = 0});
    for (const int64_t n : {496, 512}) check<float>({.m = 150, .n = n, .k = 40, .bias = true, .gap = 0});  // rows of B
    for (const int64_t m : {32, 34, 40}) {  // far rows of A, in blocks that fit a set of the cache and in higher ones
      check<float>({.m = m, .n = 70, .k = 1024, .beta = 0.5, .gap = 0});
      check<float>({.m = m, .n = 70, .k = 1600, .bias = true, .gap = 0});
    }
    for (const int64_t m : {70, 72})  // more blocks of far rows, which share a set of the cache or are spread
      for (const int64_t n : {128, 130})
        for (const int64_t k : {1024, 1100}) check<float>({.m = m, .n = n, .k = k, .beta = 0.5, .bias = true});
    for (const int64_t m : {1024, 1040})  // far lines of A, likewise
      check<float>({.m = m, .n = 70, .k = 90, .transpose_a = true, .gap = 0});
    for (const int64_t m : {15, 16, 32, 64, 128})  // rows of a linear layer
      for (const int64_t k : {500, 512, 1024})
        check<float>({.m = m, .n = 130, .k = k, .transpose_b = true, .bias = true, .gap = m % 10});
  });
}

TEST_CASE("gemm: adjacent rows of A, whose blocks are packed by eight, of one height and of two") {
  test::on_every_target([] {
    for (const int64_t m : {1500, 1507}) check<float>({.m = m, .n = 70, .k = 20, .transpose_a = true, .gap = 0});
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
