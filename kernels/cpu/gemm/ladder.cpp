// Each rung as a complete product.
#include "kernels/cpu/gemm/ladder.h"

#include "kernels/cpu/gemm/01_eigen.h"
#include "kernels/cpu/gemm/02_blocked.h"
#include "kernels/cpu/gemm/03_registers.h"
#include "kernels/cpu/gemm/07_amx.h"

namespace levin::kernels::cpu {

namespace {

/// Rungs require something to multiply.
template <void (*rung)(const GemmArgs<float>&)>
void run(const GemmArgs<float>& g) {
  if (g.m <= 0 || g.n <= 0 || g.k <= 0 || g.batch <= 0) return gemm(g);
  rung(g);
}

constexpr GemmRung kRungs[] = {
    {"01_eigen", "a library's product", &run<gemm_eigen<float>>},
    {"02_blocked", "plain loops, blocked for the caches", &run<gemm_blocked<float>>},
    {"03_registers", "a tile of C in registers", &run<gemm_registers<float>>},
    {"04_packed", "packed operands, blocked for the caches", &run<gemm_packed<float>>},
    {"05_threads", "tasks for threads, no packing that is not repaid", &run<gemm_threads<float>>},
    {"06_in_place", "operands in place, also for few rows", &run<gemm_in_place<float>>},
    {"07_amx", "large products by the matrix unit", &run<gemm_amx>},
};

}  // namespace

std::span<const GemmRung> gemm_rungs() { return kRungs; }

}  // namespace levin::kernels::cpu
