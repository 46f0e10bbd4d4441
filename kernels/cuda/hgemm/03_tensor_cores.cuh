#pragma once
// Rung 3: tensor cores.
// Idea: mma.sync multiplies 16 x 8 x 16 numbers per instruction and accumulates in float; ldmatrix loads the operands
// from shared memory to registers in the required order, transposed if an operand runs along its lines, so that no
// transposed operand needs a copy. Changes against rung 2: about ten times the multiply throughput; tiles of 128 x 128
// x 64, eight warps of 64 x 32. Rows of the operands must begin at multiples of 16 bytes. Bound: bank conflicts: the
// eight rows of a matrix lie a multiple of 128 bytes apart, in the same banks.

#include "kernels/cuda/hgemm/tile.cuh"

namespace levin::kernels::cuda {

template <class Tiles>
__global__ void __launch_bounds__(Tiles::kThreads)
    hgemm_tensor_cores(Problem<typename Tiles::T> p, Epilogue<typename Tiles::T> out, TileGrid grid) {
  using T = typename Tiles::T;
  T* stage = dynamic_shared<T>();  // A's tile, then B's
  const TilePlace place = grid.at(blockIdx.x);
  HalfCopy<typename Tiles::A, Tiles::kThreads, T> a(p.a, place.batch, place.row * Tiles::kM, p.m);
  HalfCopy<typename Tiles::B, Tiles::kThreads, T> b(p.b, place.batch, place.column * Tiles::kN, p.n);
  WarpSums<Tiles> warp;
  for (int left = static_cast<int>(p.k); left > 0; left -= Tiles::kDepth) {
    a.template copy<false>(stage, p.a, left);
    b.template copy<false>(stage + Tiles::A::kElements, p.b, left);
    __syncthreads();
    warp.multiply(stage);
    __syncthreads();
  }
  warp.write(out, place);
}

template <class T, bool Swizzled>
void run_hgemm_tensor_cores(const Problem<T>& p, Stream& stream) {
  with_layouts(p, [&]<Layout a, Layout b>() {
    using Tiles = HalfTiles<T, a, b, 128, 128, 64, 64, 32, Swizzled>;
    const TileGrid grid = tile_grid(p.m, p.n, p.k, p.batch, Tiles::kM, Tiles::kN, Tiles::kDepth);
    launch(hgemm_tensor_cores<Tiles>,
           {.grid = static_cast<unsigned>(grid.count()),
            .block = Tiles::kThreads,
            .shared = sizeof(T) * Tiles::kStage,
            .stream = stream},
           p, Epilogue<T>(p), grid);
  });
}

}  // namespace levin::kernels::cuda
