// Each rung as a complete softmax.
#include "kernels/cuda/softmax/ladder.h"

#include "kernels/cuda/softmax/01_three_passes.cuh"
#include "kernels/cuda/softmax/02_block_a_row.cuh"
#include "kernels/cuda/softmax/03_online.cuh"
#include "kernels/cuda/softmax/06_warp_a_row.cuh"

namespace levin::kernels::cuda {

namespace {

bool can_rows(const SoftmaxArgs& a) { return a.inner == 1 && (a.x.dtype == DType::f32 || a.x.dtype == DType::f16); }
bool can_registers(const SoftmaxArgs& a) { return can_rows(a) && a.n <= kMostSoftmaxRow<float>; }
bool can_vectors(const SoftmaxArgs& a) {
  if (!can_registers(a)) return false;
  return a.x.dtype == DType::f32 ? rows_are_aligned(softmax_rows_of<float>(a))
                                 : rows_are_aligned(softmax_rows_of<Half>(a));
}
bool can_warp_a_row(const SoftmaxArgs& a) { return can_rows(a) && a.n <= kMostWarpRow<float>; }

/// Wraps a rung in both types.
template <void (*in_float)(const SoftmaxRows<float>&, Stream&), void (*in_half)(const SoftmaxRows<__half>&, Stream&)>
void run(const SoftmaxArgs& a, Stream& stream) {
  if (a.outer * a.n == 0) return;
  if (a.x.dtype == DType::f32) {
    in_float(softmax_rows_of<float>(a), stream);
  } else {
    in_half(softmax_rows_of<Half>(a), stream);
  }
}

constexpr SoftmaxRung kRungs[] = {
    {"01_three_passes", "maximum, sum and result by a kernel each", can_rows,
     run<run_softmax_three_passes<float, false>, run_softmax_three_passes<__half, false>>},
    {"02_block_a_row", "one kernel, three readings", can_rows,
     run<run_softmax_block_a_row<float, false>, run_softmax_block_a_row<__half, false>>},
    {"03_online", "maximum and sum in one reading", can_rows,
     run<run_softmax_online<float, false>, run_softmax_online<__half, false>>},
    {"04_registers", "the row is read once", can_registers,
     run<run_softmax_registers<float, false>, run_softmax_registers<__half, false>>},
    {"05_vectors", "16 bytes a load", can_vectors,
     run<run_softmax_vectors<float, false>, run_softmax_vectors<__half, false>>},
    {"06_warp_a_row", "short rows without barriers", can_warp_a_row,
     run<run_softmax_warp_a_row<float, false>, run_softmax_warp_a_row<__half, false>>},
};

}  // namespace

std::span<const SoftmaxRung> softmax_rungs() { return kRungs; }

}  // namespace levin::kernels::cuda
