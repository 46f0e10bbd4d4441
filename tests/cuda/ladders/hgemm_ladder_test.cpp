// Every rung of the 16-bit GEMM ladder compared with sums in double precision.
#include "kernels/cuda/hgemm/ladder.h"

#include "cuda/matmul_problem.h"
#include "support/small_cases.h"
#include "support/thread_order.h"

#include <levin/autograd/ops.h>

#include <cmath>
#include <map>
#include <string>

using namespace levin;
using namespace levin::test;
namespace cuda_kernels = levin::kernels::cuda;

namespace {

using Runs = std::map<std::string, int>;

void check_rungs(const Problem& p, DType dtype, Runs& runs, const std::string& only = {}) {
  Product product(p, dtype);
  Stream stream = current_stream(levin::cuda(0));
  for (const cuda_kernels::MatmulRung& rung : cuda_kernels::hgemm_rungs()) {
    const kernels::MatmulArgs args = product.args();
    if (!rung.can(args) || (!only.empty() && only != rung.name)) continue;
    ++runs[rung.name];
    const ThreadOrder order(describe(p) + std::string(rung.name) + std::string(name_of(dtype)));
    rung.run(args, stream);
    const double worst = product.worst();
    CHECK_MESSAGE(worst <= 1.0, std::string(rung.name)
                                    << ": " << describe(p) << " error over allowance " << worst << order.note());
  }
}

}  // namespace

TEST_CASE("hgemm ladder: sizes around the tiles' edges, all transposes") {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Runs runs;
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        if (small_cases() && (ta == tb) != (dtype == DType::f16)) continue;
        check_rungs({.m = 37, .n = 69, .k = 75, .transpose_a = ta, .transpose_b = tb}, dtype, runs);
        check_rungs({.m = 131, .n = 73, .k = 139, .transpose_a = ta, .transpose_b = tb, .multiple = 8, .bias = true},
                    dtype, runs);
      }
    }
    check_rungs({.m = 7,
                 .n = 20,
                 .k = 210,
                 .batch = 2,
                 .transpose_b = true,
                 .multiple = 8,
                 .alpha = -0.5,
                 .beta = 2,
                 .shared_b = true},
                dtype, runs);
    CHECK(cuda_kernels::hgemm_rungs().size() == 10);
    for (const cuda_kernels::MatmulRung& rung : cuda_kernels::hgemm_rungs())
      CHECK_MESSAGE(runs[rung.name] >= (small_cases() ? 2 : 4), std::string(rung.name));
  }
}

TEST_CASE("hgemm ladder: no unit stride, empty K, parts of K, one element") {
  Runs runs;
  check_rungs({.m = 33, .n = 40, .k = 17, .transpose_b = true, .spread = 2}, DType::f16, runs);
  CHECK(runs.count("tensor_cores") == 0);  // it reports the problem as unsupported
  check_rungs({.m = 5, .n = 9, .k = 0, .multiple = 8, .bias = true}, DType::bf16, runs);
  check_rungs({.m = 20, .n = 24, .k = 700, .transpose_a = true, .multiple = 8, .beta = -1, .bias = true}, DType::f16,
              runs, "persistent");
  check_rungs({.m = 20, .n = 24, .k = 700, .transpose_b = true, .multiple = 8, .beta = -1, .bias = true}, DType::bf16,
              runs, "warpgroups");
  check_rungs({.m = 20, .n = 24, .k = 700, .transpose_a = true, .multiple = 8, .beta = -1, .bias = true}, DType::bf16,
              runs, "copy_engine");
  check_rungs({.m = 20, .n = 24, .k = 701, .transpose_a = true, .beta = -1, .bias = true}, DType::f16, runs,
              "any_operand");
  check_rungs({.m = 1, .n = 1, .k = 1}, DType::f16, runs);
}

TEST_CASE("hgemm ladder: persistent blocks process more tiles than there are blocks") {
  Runs runs;
  for (const char* rung : {"persistent", "warpgroups", "copy_engine"})
    check_rungs({.m = 330, .n = 325, .k = 130, .transpose_b = true, .multiple = 8}, DType::f16, runs, rung);
}

TEST_CASE("hgemm ladder: the large tile") {
  Runs runs;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      check_rungs({.m = 9, .n = 10, .k = 70, .batch = 64, .transpose_a = ta, .transpose_b = tb, .multiple = 8},
                  ta == tb ? DType::f16 : DType::bf16, runs, "persistent");
    }
  }
  CHECK(runs["persistent"] == 4);
}

TEST_CASE("hgemm ladder: the large tile of warpgroups, all transposes, several tiles of K") {
  Runs runs;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      check_rungs({.m = 9, .n = 202, .k = 330, .batch = 100, .transpose_a = ta, .transpose_b = tb, .multiple = 8},
                  ta == tb ? DType::f16 : DType::bf16, runs, "warpgroups");
    }
  }
  CHECK(runs["warpgroups"] == 4);
}

TEST_CASE("hgemm ladder: batches of two axes that do not merge, and of one operand only") {
  const Tensor a = randn({2, 20, 3, 72}).to(kHalf), b = randn({3, 72, 40}).to(kHalf);
  const Tensor heads = a.to(levin::cuda(0)).permute({0, 2, 1, 3});                    // (2, 3, 20, 72)
  const Tensor shared = b.to(levin::cuda(0)).unsqueeze(0).expand({2, 3, 72, 40});  // stride 0 along the first axis
  const Tensor expected = matmul(a.to(kFloat64).permute({0, 2, 1, 3}), b.to(kFloat64));
  Stream stream = current_stream(levin::cuda(0));
  int ran = 0;
  for (const cuda_kernels::MatmulRung& rung : cuda_kernels::hgemm_rungs()) {
    const Tensor out = full({2, 3, 20, 40}, std::nan(""), {.dtype = kHalf, .device = levin::cuda(0)});
    kernels::MatmulArgs args;
    args.out = out.tensor_view(), args.a = heads.tensor_view(), args.b = shared.tensor_view();
    if (!rung.can(args)) continue;
    ran += std::string(rung.name) == "copy_engine";
    rung.run(args, stream);
    const double worst = (out.cpu().to(kFloat64) - expected).abs().max().item<double>();
    CHECK_MESSAGE(worst < 0.02, std::string(rung.name) << ": " << worst);  // results below 64 are rounded by 1/64
  }
  CHECK(ran == 1);
}

TEST_CASE("hgemm ladder: the copy engine leaves operands to others whose rows overlap") {
  Tensor out = full({16, 16}, 0.0, {.dtype = kHalf, .device = levin::cuda(0)});
  const Tensor row = full({16}, 1.0, {.dtype = kHalf, .device = levin::cuda(0)}), square = out.clone();
  kernels::MatmulArgs args;
  args.out = out.tensor_view(), args.b = square.tensor_view();
  for (const bool same_row : {false, true}) {
    args.a = (same_row ? row.unsqueeze(0).expand({16, 16}) : square).tensor_view();
    for (const cuda_kernels::MatmulRung& rung : cuda_kernels::hgemm_rungs()) {
      const std::string name = rung.name;
      if (name == "copy_engine") CHECK(rung.can(args) == !same_row);
      if (name == "persistent") CHECK(rung.can(args));
    }
  }
}
