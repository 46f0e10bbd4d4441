#pragma once
// Rung 7, which ships for 16-bit floats where rung 10 does not.
// Idea: persistent blocks, as many as run at once, each of which loops over tiles of C. The ring of buffers continues
// from one tile of C to the next, so that the next tile's operands arrive while this one's sums are written. The tiles
// are traversed in groups of eight rows, so that concurrent blocks share their operands in L2. Changes against rung 6:
// only one prologue; fewer reads of global memory; tiles of 128 x 256 with warps of 64 x 64 for large problems, of 64 x
// 64 for small ones, with K split if the tiles would not fill the device. Bound: the tensor cores' rate under mma.sync.

#include "kernels/cuda/hgemm/06_register_buffers.cuh"

namespace levin::kernels::cuda {

/// The loads of a block: the operands' tiles along K, for one tile of C after the other.
template <class Tiles>
struct HalfStream {
  using T = typename Tiles::T;
  const Problem<T>& p;
  const TileGrid& grid;
  int tiles_of_k;  ///< per tile of C; at least one, which is zeros if K is 0
  int index;       ///< index of the tile of C
  int left;        ///< remaining tiles of K for it
  int steps_left;  ///< remaining steps of K
  HalfCopy<typename Tiles::A, Tiles::kThreads, T> a;
  HalfCopy<typename Tiles::B, Tiles::kThreads, T> b;

  __device__ HalfStream(const Problem<T>& problem, const TileGrid& tile_grid)
      : p(problem), grid(tile_grid), tiles_of_k(static_cast<int>(tile_grid.k_part / Tiles::kDepth)) {
    if (tiles_of_k == 0) tiles_of_k = 1;
    begin(static_cast<int>(blockIdx.x));
  }

  __device__ void begin(int tile) {
    index = tile, left = tiles_of_k;
    if (index >= grid.count()) return;
    const TilePlace place = grid.at(index);
    const int k_size = static_cast<int>(p.k), k_part = static_cast<int>(grid.k_part);
    const int first = place.split * k_part;
    steps_left = k_size - first < k_part ? k_size - first : k_part;
    a = {p.a, place.batch, place.row * Tiles::kM, p.m, first};
    b = {p.b, place.batch, place.column * Tiles::kN, p.n, first};
  }

  /// Starts a group of copies and advances; an empty group keeps the count when nothing is left.
  __device__ void fetch(T* stage) {
    if (index < grid.count()) {
      a.template copy<true>(stage, p.a, steps_left);
      b.template copy<true>(stage + Tiles::A::kElements, p.b, steps_left);
      steps_left -= Tiles::kDepth;
      if (--left == 0) begin(index + static_cast<int>(gridDim.x));
    }
    ptx::cp_async_commit();
  }
};

template <class Tiles, int Stages, class Out>
__global__ void __launch_bounds__(Tiles::kThreads)
    hgemm_persistent(Problem<typename Tiles::T> p, Out out, TileGrid grid) {
  using T = typename Tiles::T;
  T* shared = dynamic_shared<T>();  // (stage, A's tile then B's)
  HalfStream<Tiles> stream(p, grid);
  const auto own = static_cast<int>((grid.count() - 1 - blockIdx.x) / gridDim.x + 1);  // tiles of C
  const int total = own * stream.tiles_of_k;
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < Stages - 1; ++i) stream.fetch(shared + i * Tiles::kStage);
  ptx::cp_async_wait<Stages - 2>();
  __syncthreads();

  WarpSums<Tiles> warp;
  Fragments<Tiles> fragments[2];
  fragments[0].load(shared, warp.row, warp.column, 0);
  int index = static_cast<int>(blockIdx.x), stage = 0, done = 0;
  for (int tile = 0; tile < total; ++tile) {
    const int next = stage + 1 == Stages ? 0 : stage + 1;
    LEVIN_PRAGMA_UNROLL
    for (int s = 0; s < Tiles::kSteps; ++s) {
      if (s == 0) stream.fetch(shared + (stage == 0 ? Stages - 1 : stage - 1) * Tiles::kStage);
      if (s + 1 < Tiles::kSteps) {
        fragments[(s + 1) % 2].load(shared + stage * Tiles::kStage, warp.row, warp.column, (s + 1) * 16);
      } else {  // the next stage must have arrived, and all must have read this one before it is overwritten
        ptx::cp_async_wait<Stages - 2>();
        __syncthreads();
        if (tile + 1 < total) fragments[0].load(shared + next * Tiles::kStage, warp.row, warp.column, 0);
      }
      warp.multiply(fragments[s % 2]);
    }
    stage = next;
    if (++done == stream.tiles_of_k) {
      warp.write(out, grid.at(index));
      warp.clear();
      done = 0, index += static_cast<int>(gridDim.x);
    }
  }
}

template <class T, Layout a, Layout b>
using LargeHalfTiles = HalfTiles<T, a, b, 128, 256, 64, 64, 64, true>;  // 256 threads, 144 KiB with three stages
template <class T, Layout a, Layout b>
using SmallHalfTiles = HalfTiles<T, a, b, 64, 64, 64, 32, 32, true>;  // 128 threads, 48 KiB
inline constexpr int kHalfStages = 3;
template <class Tiles>
inline constexpr std::size_t kHalfShared = sizeof(typename Tiles::T) * Tiles::kStage* kHalfStages;

}  // namespace levin::kernels::cuda
