// Each rung as a complete layer norm.
#include "kernels/cuda/norm/ladder.h"

#include "kernels/cuda/norm/01_naive.cuh"
#include "kernels/cuda/norm/02_shared_row.cuh"
#include "kernels/cuda/norm/04_vectors.cuh"

namespace levin::kernels::cuda {

namespace {

bool can_rows(const LayerNormArgs& a) { return a.x.dtype == DType::f32; }
bool can_shared_row(const LayerNormArgs& a) {
  return can_rows(a) && a.columns * static_cast<std::int64_t>(sizeof(float)) <= kMostSharedRow;
}
bool can_registers(const LayerNormArgs& a) { return can_rows(a) && a.columns <= kMostLayerRow<float>; }
bool can_vectors(const LayerNormArgs& a) { return can_registers(a) && rows_are_aligned(LayerRows<float>(a)); }

template <void (*rows)(const LayerRows<float>&, Stream&)>
void run(const LayerNormArgs& a, Stream& stream) {
  if (a.rows * a.columns > 0) rows(LayerRows<float>(a), stream);
}

constexpr LayerNormRung kRungs[] = {
    {"01_naive", "three readings of global memory", can_rows, run<run_layer_norm_naive<float>>},
    {"02_shared_row", "the row waits in shared memory", can_shared_row, run<run_layer_norm_shared_row<float>>},
    {"03_registers", "the row stays in registers", can_registers, run<run_layer_norm_registers<float>>},
    {"04_vectors", "16 bytes a load", can_vectors, run<run_layer_norm_vectors<float>>},
};

}  // namespace

std::span<const LayerNormRung> layer_norm_rungs() { return kRungs; }

}  // namespace levin::kernels::cuda
