// The float32 ladder's list.

#include "kernels/cuda/sgemm/ladder.h"

#include "kernels/cuda/sgemm/02_coalesced.cuh"
#include "kernels/cuda/sgemm/03_shared_tile.cuh"
#include "kernels/cuda/sgemm/04_register_column.cuh"
#include "kernels/cuda/sgemm/05_register_tile.cuh"
#include "kernels/cuda/sgemm/sgemm.cuh"

namespace levin::kernels::cuda {

namespace {

using Run = void (*)(const Problem<float>&, Stream&);
using Can = bool (*)(const Problem<float>&);

/// True if the grid of the ladder's smallest tiles fits one launch.
bool any(const Problem<float>& p) { return fits_launch(tile_grid(p.m, p.n, p.k, p.batch, 8, 32, 1), p.m, p.n, p.k); }
bool vectors(const Problem<float>& p) { return any(p) && vector_ready(p.a) && vector_ready(p.b); }
void run_tf32(const Problem<float>& p, Stream& stream) { run_sgemm_large<Tf32Warps, Identity>(p, stream); }

template <Run run, Can can>
constexpr MatmulRung rung(const char* name, const char* idea) {
  return {name, idea, [](const MatmulArgs& a) { return a.out.dtype == DType::f32 && can(problem_of<float>(a)); },
          [](const MatmulArgs& a, Stream& stream) { run(problem_of<float>(a), stream); }};
}

constexpr MatmulRung kRungs[] = {
    rung<run_gemm_naive<float>, any>("naive", "a thread an element"),
    rung<run_gemm_coalesced<float>, any>("coalesced", "neighbours in a warp are neighbours in memory"),
    rung<run_gemm_shared_tile<float, 32>, any>("shared_tile", "tiles in shared memory"),
    rung<run_sgemm_register_column<float>, any>("register_column", "eight elements of a column a thread"),
    rung<run_sgemm_register_tile<float>, any>("register_tile", "8 x 8 elements a thread"),
    rung<run_sgemm_vectorized<float>, vectors>("vectorized", "16 bytes an instruction"),
    rung<run_sgemm_warp_tiles<float>, vectors>("warp_tiles", "warps own tiles, lanes read neighbours"),
    rung<run_sgemm_async_stages<Identity>, can_sgemm>("async_stages", "the next tiles arrive by cp.async"),
    rung<run_tf32, can_sgemm_tf32>("tf32", "tensor cores on rounded operands"),
};

}  // namespace

std::span<const MatmulRung> sgemm_rungs() { return kRungs; }

}  // namespace levin::kernels::cuda
