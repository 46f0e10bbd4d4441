// Matrix-vector products compared with sums in double precision: both orders, tails, strides and batches.

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

/// Checks C as a column and as a row.
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

TEST_CASE("gemv: sizes around a warp's and a block's edges, all transposes") {
  for (const int64_t lines : {1, 31, 32, 33, 70}) {
    for (const int64_t k : {1, 7, 8, 67}) check_both({.m = lines, .n = 1, .k = k});
  }
}

TEST_CASE("gemv: 16-byte loads, and tails that prevent them") {
  check_both({.m = 37, .n = 1, .k = 264, .multiple = 8});
  check_both({.m = 37, .n = 1, .k = 261, .multiple = 8});
  check_both({.m = 40, .n = 1, .k = 264, .spread = 2});
}

TEST_CASE("gemv: batches, bias, alpha and beta") {
  check_both({.m = 33, .n = 1, .k = 40, .batch = 3, .multiple = 8, .bias = true});
  check_both({.m = 33, .n = 1, .k = 19, .batch = 2, .alpha = -0.5, .beta = 2, .shared_b = true});
}

TEST_CASE("gemv: long sums of few rows, split or by one block, and empty ones") {
  check_both({.m = 3, .n = 1, .k = 5003});
  check_both({.m = 40, .n = 1, .k = 4096, .multiple = 8});
  check_both({.m = 5, .n = 1, .k = 0});
}
