#pragma once
// Rung 5: a ring of tiles in flight.
// Idea: cp.async copies the next tiles to shared memory while this one is multiplied. Changes against rung 4: three
// buffers instead of one, one barrier per tile instead of two, and the copies use no registers. Bound: the warps wait
// for ldmatrix before each step's products.

#include "kernels/cuda/hgemm/tile.cuh"

namespace levin::kernels::cuda {

/// The tiles of A and B for one tile of C, copied through a ring of Stages buffers.
template <class Tiles, int Stages>
struct HalfRing {
  using T = typename Tiles::T;
  const Problem<T>& p;
  T* shared;  // (stage, A's tile then B's)
  HalfCopy<typename Tiles::A, Tiles::kThreads, T> a;
  HalfCopy<typename Tiles::B, Tiles::kThreads, T> b;
  int tiles;

  __device__ HalfRing(const Problem<T>& problem, T* memory, const TilePlace& place)
      : p(problem),
        shared(memory),
        a(p.a, place.batch, place.row * Tiles::kM, p.m),
        b(p.b, place.batch, place.column * Tiles::kN, p.n),
        tiles(static_cast<int>(ceil_div(p.k, Tiles::kDepth))) {
    LEVIN_PRAGMA_UNROLL
    for (int tile = 0; tile < Stages - 1; ++tile) fetch(tile);
  }

  __device__ T* stage(int tile) const { return shared + tile % Stages * Tiles::kStage; }
  /// Starts copying the next tile, whose index is `tile`; an empty group keeps the count when no tile is left.
  __device__ void fetch(int tile) {
    if (tile < tiles) {
      const int left = static_cast<int>(p.k) - tile * Tiles::kDepth;
      a.template copy<true>(stage(tile), p.a, left);
      b.template copy<true>(stage(tile) + Tiles::A::kElements, p.b, left);
    }
    ptx::cp_async_commit();
  }
  /// Waits until the oldest tile in flight has arrived for all threads and all have read the one before it.
  __device__ void wait() const {
    ptx::cp_async_wait<Stages - 2>();
    __syncthreads();
  }
};

template <class Tiles, int Stages>
__global__ void __launch_bounds__(Tiles::kThreads)
    hgemm_async_stages(Problem<typename Tiles::T> p, Epilogue<typename Tiles::T> out, TileGrid grid) {
  const TilePlace place = grid.at(blockIdx.x);
  HalfRing<Tiles, Stages> ring(p, dynamic_shared<typename Tiles::T>(), place);
  WarpSums<Tiles> warp;
  for (int tile = 0; tile < ring.tiles; ++tile) {
    ring.wait();
    ring.fetch(tile + Stages - 1);
    warp.multiply(ring.stage(tile));
  }
  warp.write(out, place);
}

/// Launches a rung, Rung::kernel<Tiles, Stages>, on rings of three stages.
template <class Rung, class T>
void run_on_ring(const Problem<T>& p, Stream& stream) {
  constexpr int kStages = 3;
  with_layouts(p, [&]<Layout a, Layout b>() {
    using Tiles = HalfTiles<T, a, b, 128, 128, 64, 64, 32, true>;
    const TileGrid grid = tile_grid(p.m, p.n, p.k, p.batch, Tiles::kM, Tiles::kN, Tiles::kDepth);
    launch(Rung::template kernel<Tiles, kStages>,
           {.grid = static_cast<unsigned>(grid.count()),
            .block = Tiles::kThreads,
            .shared = sizeof(T) * Tiles::kStage * kStages,
            .stream = stream},
           p, Epilogue<T>(p), grid);
  });
}

struct AsyncStages {
  template <class Tiles, int Stages>
  static constexpr auto kernel = &hgemm_async_stages<Tiles, Stages>;
};

template <class T>
void run_hgemm_async_stages(const Problem<T>& p, Stream& stream) {
  run_on_ring<AsyncStages>(p, stream);
}

}  // namespace levin::kernels::cuda
