// Every rung of the float32 GEMM ladder, and the shipping kernel, compared with sums in double precision.
#include "kernels/cuda/sgemm/ladder.h"

#include "cuda/matmul_problem.h"
#include "kernels/cuda/matmul/fused.h"
#include "kernels/cuda/matmul/options.h"
#include "support/small_cases.h"
#include "support/thread_order.h"

#include <map>

using namespace levin;
using namespace levin::test;
namespace cuda_kernels = levin::kernels::cuda;

namespace {

const double kTf32 = 0x1p-11;

void check_rungs(const Problem& p, std::map<std::string, int>& runs) {
  Product product(p, DType::f32);
  Stream stream = current_stream(levin::cuda(0));
  for (const cuda_kernels::MatmulRung& rung : cuda_kernels::sgemm_rungs()) {
    const kernels::MatmulArgs args = product.args();
    if (!rung.can(args)) continue;
    ++runs[rung.name];
    const ThreadOrder order(describe(p) + std::string(rung.name));
    rung.run(args, stream);
    const double worst = product.worst(std::string(rung.name) == "tf32" ? kTf32 : 0.0);
    CHECK_MESSAGE(worst <= 1.0, std::string(rung.name)
                                    << ": " << describe(p) << " error over allowance " << worst << order.note());
  }
}

void check_matmul(const Problem& p, DType dtype, double operand_unit = 0) {
  Product product(p, dtype);
  Stream stream = current_stream(levin::cuda(0));
  kernels::matmul(product.args(), stream);
  CHECK_MESSAGE(product.worst(operand_unit) <= 1.0, describe(p));
}

}  // namespace

TEST_CASE("sgemm ladder: sizes around the tiles' edges, all transposes") {
  std::map<std::string, int> runs;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      if (small_cases() && ta != tb) continue;
      check_rungs({.m = 65, .n = 37, .k = 19, .transpose_a = ta, .transpose_b = tb}, runs);
      check_rungs({.m = 131, .n = 67, .k = 21, .transpose_a = ta, .transpose_b = tb, .multiple = 4, .bias = true},
                  runs);
      check_rungs({.m = 7,
                   .n = 140,
                   .k = 18,
                   .batch = 2,
                   .transpose_a = ta,
                   .transpose_b = tb,
                   .multiple = 4,
                   .alpha = -0.5,
                   .beta = 2,
                   .shared_b = true},
                  runs);
    }
  }
  check_rungs({.m = 1, .n = 1, .k = 1}, runs);
  CHECK(cuda_kernels::sgemm_rungs().size() == 9);
  for (const cuda_kernels::MatmulRung& rung : cuda_kernels::sgemm_rungs())
    CHECK_MESSAGE(runs[rung.name] >= (small_cases() ? 4 : 8), std::string(rung.name));
}

TEST_CASE("sgemm ladder: no unit stride, empty K, parts of K") {
  std::map<std::string, int> runs;
  check_rungs({.m = 33, .n = 40, .k = 17, .transpose_b = true, .spread = 2}, runs);
  CHECK(runs.count("vectorized") == 0);  // it reports the problem as unsupported
  check_rungs({.m = 5, .n = 9, .k = 0, .multiple = 4, .bias = true}, runs);
  check_rungs({.m = 5, .n = 8, .k = 0, .multiple = 4, .beta = 2}, runs);
  check_rungs({.m = 20, .n = 24, .k = 700, .transpose_a = true, .multiple = 4, .beta = -1, .bias = true}, runs);
  check_rungs({.m = 3, .n = 5, .k = 301, .batch = 3}, runs);
}

TEST_CASE("matmul: the shipping kernel with large and small tiles") {
  check_matmul({.m = 9, .n = 12, .k = 20, .batch = 100, .multiple = 4}, DType::f32);
  check_matmul({.m = 12, .n = 9, .k = 20, .batch = 100, .transpose_a = true, .transpose_b = true, .multiple = 4},
               DType::f32);
  check_matmul({.m = 70, .n = 30, .k = 50, .batch = 2, .transpose_b = true, .bias = true}, DType::f32);
}

TEST_CASE("matmul: TF32 only if it is allowed") {
  const Problem p{.m = 30, .n = 40, .k = 64, .multiple = 4};
  check_matmul(p, DType::f32);
  cuda_kernels::allow_tf32 = true;
  Product product(p, DType::f32);
  Stream stream = current_stream(levin::cuda(0));
  kernels::matmul(product.args(), stream);
  cuda_kernels::allow_tf32 = false;
  CHECK(product.worst(kTf32) <= 1.0);
  CHECK(product.worst() > 1.0);
}

TEST_CASE("matmul: float64") {
  check_matmul({.m = 35, .n = 18, .k = 20, .batch = 2, .transpose_a = true, .alpha = 2, .beta = 1, .bias = true},
               DType::f64);
  check_matmul({.m = 18, .n = 35, .k = 37, .transpose_b = true, .spread = 2}, DType::f64);
}

TEST_CASE("matmul_fused: activation and residual in the epilogue") {
  using cuda_kernels::FusedActivation;
  Stream stream = current_stream(levin::cuda(0));
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const int64_t multiple : {1, 8}) {
      Product product({.m = 18, .n = 21, .k = 40, .transpose_b = true, .multiple = multiple, .bias = true}, dtype);
      const auto residual = product.residual.to_vector<double>();
      cuda_kernels::matmul_fused(product.args(), FusedActivation::relu, product.residual_view(), stream);
      CHECK(product.worst(0, [&](double x, int64_t i) { return std::max(x, 0.0) + residual[at(i)]; }) <= 1.0);
      cuda_kernels::matmul_fused(product.args(), FusedActivation::gelu, {}, stream);
      CHECK(product.worst(0, [](double x, int64_t) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }) <= 1.0);
      cuda_kernels::matmul_fused(product.args(), FusedActivation::none, product.residual_view(), stream);
      CHECK(product.worst(0, [&](double x, int64_t i) { return x + residual[at(i)]; }) <= 1.0);
    }
  }
}
