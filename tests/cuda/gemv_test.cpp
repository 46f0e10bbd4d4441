// Products with a vector against sums in double precision: both ways through the matrix, tails, strides and batches.

#include "cuda/matmul_problem.h"

using namespace levin;
using namespace levin::test;

namespace {

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

void check_product(const Problem& p) {
  for (const DType dtype : kTypes) {
    Product product(p, dtype);
    Stream stream = current_stream(levin::cuda(0));
    kernels::matmul(product.args(), stream);
    const double worst = product.worst();
    CHECK_MESSAGE(worst <= 1.0, describe(p) << " " << name_of(dtype) << " error over allowance " << worst);
  }
}

/// C is a column and a row.
void check_both(Problem p) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      p.transpose_a = ta, p.transpose_b = tb;
      check_product(p);
      Problem row = p;
      std::swap(row.m, row.n);
      check_product(row);
    }
  }
}

}  // namespace

TEST_CASE("gemv: sizes round a warp's and a block's edges, all transposes") {
  for (const int64_t lines : {1, 31, 32, 33, 70}) {
    for (const int64_t k : {1, 7, 8, 67}) check_both({.m = lines, .n = 1, .k = k});
  }
}

TEST_CASE("gemv: vectors of 16 bytes, and the tail that keeps them away") {
  check_both({.m = 37, .n = 1, .k = 264, .multiple = 8});
  check_both({.m = 37, .n = 1, .k = 261, .multiple = 8});
  check_both({.m = 40, .n = 1, .k = 264, .spread = 2});
}

TEST_CASE("gemv: batches, bias, alpha and beta") {
  check_both({.m = 33, .n = 1, .k = 40, .batch = 3, .multiple = 8, .bias = true});
  check_both({.m = 33, .n = 1, .k = 19, .batch = 2, .alpha = -0.5, .beta = 2, .shared_b = true});
}

TEST_CASE("gemv: long sums of few lines, cut or by a block, and none") {
  check_both({.m = 3, .n = 1, .k = 5003});
  check_both({.m = 40, .n = 1, .k = 4096, .multiple = 8});
  check_both({.m = 5, .n = 1, .k = 0});
}
