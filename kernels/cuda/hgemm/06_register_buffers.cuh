#pragma once
// Rung 6: two sets of fragments.
// Idea: while the tensor cores work on one step's fragments, ldmatrix loads the next step's, also across the boundary
// of two tiles. Changes against rung 5: the loop is software-pipelined by one step, at the price of a second set of
// fragments in registers. Bound: the tensor cores, except at the ends of tiles of C.

#include "kernels/cuda/hgemm/05_async_stages.cuh"

namespace levin::kernels::cuda {

template <class Tiles, int Stages>
__global__ void __launch_bounds__(Tiles::kThreads)
    hgemm_register_buffers(Problem<typename Tiles::T> p, Epilogue<typename Tiles::T> out, TileGrid grid) {
  const TilePlace place = grid.at(blockIdx.x);
  HalfRing<Tiles, Stages> ring(p, dynamic_shared<typename Tiles::T>(), place);
  WarpSums<Tiles> warp;
  Fragments<Tiles> fragments[2];
  ring.wait();
  if (ring.tiles > 0) fragments[0].load(ring.stage(0), warp.row, warp.column, 0);
  for (int tile = 0; tile < ring.tiles; ++tile) {
    LEVIN_PRAGMA_UNROLL
    for (int s = 0; s < Tiles::kSteps; ++s) {
      if (s == 0) ring.fetch(tile + Stages - 1);
      if (s + 1 < Tiles::kSteps) {
        fragments[(s + 1) % 2].load(ring.stage(tile), warp.row, warp.column, (s + 1) * 16);
      } else {
        ring.wait();
        if (tile + 1 < ring.tiles) fragments[0].load(ring.stage(tile + 1), warp.row, warp.column, 0);
      }
      warp.multiply(fragments[s % 2]);
    }
  }
  warp.write(out, place);
}

struct RegisterBuffers {
  template <class Tiles, int Stages>
  static constexpr auto kernel = &hgemm_register_buffers<Tiles, Stages>;
};

template <class T>
void run_hgemm_register_buffers(const Problem<T>& p, Stream& stream) {
  run_on_ring<RegisterBuffers>(p, stream);
}

}  // namespace levin::kernels::cuda
