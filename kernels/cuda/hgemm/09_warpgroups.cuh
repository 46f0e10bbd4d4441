#pragma once
// Rung 9, for GPUs of compute capability 9.
// Idea: wgmma, by which four warps multiply 64 rows by up to 256 columns straight from shared memory: no ldmatrix, no
// fragments in registers, and a product that runs while its warps start the next copies. Changes against rung 7: a
// block has two warpgroups, each with 64 rows of the tile; operands along the lines lie in blocks of 64 lines, as wgmma
// reads them; one product is in flight, so that a buffer is free two tiles later, and there are four buffers. Bound:
// the warps' own instructions, most of them for the addresses of the copies: with two warps, a scheduler issues only
// every fifth cycle. Warps that only copy (one group of four, or one warp for each buffer) were tried on an H100: 4 to
// 16 % slower.

#include "kernels/cuda/hgemm/07_persistent.cuh"

namespace levin::kernels::cuda {

/// A tile of an operand in shared memory as wgmma reads it: rows of 64 elements with their chunks of 16 bytes permuted,
/// a row for each line (along_k), or for each step of k and 64 lines (along_lines).
template <class T, Layout layout, int Lines>
struct GroupTile {
  static constexpr Layout kLayout = layout;
  static constexpr bool kAlongLines = layout == Layout::along_lines;
  static constexpr int kLines = Lines, kDepth = 64;
  static constexpr int kRows = kAlongLines ? kDepth : Lines;
  static constexpr int kColumns = kAlongLines ? Lines : kDepth;
  static constexpr int kElements = Lines * kDepth;
  static constexpr int kPitch = 64;  ///< distance of rows
  static_assert(Lines % 64 == 0);

  /// Returns the offset of the chunk that begins at (row, column).
  __device__ static int at(int row, int column) {
    return column / 64 * (kRows * 64) + row * 64 + (column % 64 / 8 ^ row % 8) * 8;
  }
  /// Returns lines from `line`, a multiple of 64, on, for the steps from 0 on.
  __device__ static ptx::SharedOperand operand(const T* tile, int line) {
    return ptx::shared_operand(tile + (kAlongLines ? line * kDepth : line * 64), kRows * 128);
  }
  /// Distance in bytes of 16 steps.
  static constexpr int kStepBytes = kAlongLines ? 16 * 128 : 16 * 2;
};

/// The geometry of the rung: a tile of 128 x N, 64 rows for each warpgroup.
template <class T_, Layout layout_a, Layout layout_b, int N, int Stages>
struct GroupTiles {
  using T = T_;
  using A = GroupTile<T, layout_a, 128>;
  using B = GroupTile<T, layout_b, N>;
  static constexpr int kM = 128, kN = N, kDepth = 64, kThreads = 256, kStages = Stages;
  static constexpr int kStage = A::kElements + B::kElements;  // elements of both tiles
  static constexpr std::size_t kShared = sizeof(T) * kStage * Stages;
};

/// A warpgroup's sums: 64 rows of the block's tile.
template <class Tiles>
struct GroupSums {
  using T = typename Tiles::T;
  static constexpr int kColumnTiles = Tiles::kN / 8;
  float sums[kColumnTiles][4];

  /// Starts the products of a stage; the first ones of a tile of C replace the sums.
  __device__ void multiply(const T* stage, bool first) {
    constexpr bool lines_a = Tiles::A::kAlongLines, lines_b = Tiles::B::kAlongLines;
    const auto a = Tiles::A::operand(stage, group() * 64), b = Tiles::B::operand(stage + Tiles::A::kElements, 0);
    ptx::wgmma_hold(sums);
    ptx::wgmma_fence();
    LEVIN_PRAGMA_UNROLL
    for (int s = 0; s < Tiles::kDepth / 16; ++s) {
      ptx::wgmma_m64k16<T, lines_a, lines_b>(sums, a.plus(s * Tiles::A::kStepBytes), b.plus(s * Tiles::B::kStepBytes),
                                             s > 0 || !first);
    }
    ptx::wgmma_commit();
  }
  /// Waits for all products, so that the sums may be read.
  __device__ void wait() {
    ptx::wgmma_wait<0>();
    ptx::wgmma_hold(sums);
  }

  /// Neighbouring lanes exchange halves of their sums, so that each stores four neighbours, and four lanes 32 bytes.
  template <class Out>
  __device__ void write(const Out& out, const TilePlace& place) const {
    const int lane = ptx::lane_id(), warp = static_cast<int>(threadIdx.x) / 32;
    const bool odd = lane % 2 == 1;
    const int row = place.row * Tiles::kM + warp * 16 + lane / 4;
    const int column = place.column * Tiles::kN + (odd ? 8 : 0) + lane % 4 / 2 * 4;
    LEVIN_PRAGMA_UNROLL
    for (int j = 0; j < kColumnTiles; j += 2) {
      LEVIN_PRAGMA_UNROLL
      for (int half = 0; half < 2; ++half) {
        const float *even_tile = sums[j] + 2 * half, *odd_tile = sums[j + 1] + 2 * half;
        const float low = __shfl_xor_sync(0xffffffffu, odd ? even_tile[0] : odd_tile[0], 1);
        const float high = __shfl_xor_sync(0xffffffffu, odd ? even_tile[1] : odd_tile[1], 1);
        const float four[4] = {odd ? low : even_tile[0], odd ? high : even_tile[1], odd ? odd_tile[0] : low,
                               odd ? odd_tile[1] : high};
        out.write(place, row + half * 8, column + j * 8, four);
      }
    }
  }

 private:
  __device__ static int group() { return static_cast<int>(threadIdx.x) / 128; }
};

template <class Tiles, class Out>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    hgemm_warpgroups(Problem<typename Tiles::T> p, Out out, TileGrid grid) {
  using T = typename Tiles::T;
  constexpr int kAhead = Tiles::kStages - 2;  // tiles in flight; the two others are being read
  T* shared = dynamic_shared<T>();            // (stage, A's tile then B's)
  HalfStream<Tiles> stream(p, grid);
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < kAhead; ++i) stream.fetch(shared + i * Tiles::kStage);

  GroupSums<Tiles> group;
  int stage = 0;
  for (auto index = static_cast<int>(blockIdx.x); index < grid.count(); index += static_cast<int>(gridDim.x)) {
    for (int tile = 0; tile < stream.tiles_of_k; ++tile) {
      ptx::cp_async_wait<kAhead - 1>();
      // The stage has arrived for all, and all have waited for the products of the last but one tile. As in CUTLASS,
      // no proxy fence stands between cp.async and wgmma: it would also wait for the copies in flight.
      __syncthreads();
      group.multiply(shared + stage * Tiles::kStage, tile == 0);
      const int free = stage + kAhead < Tiles::kStages ? stage + kAhead : stage + kAhead - Tiles::kStages;
      stream.fetch(shared + free * Tiles::kStage);
      stage = stage + 1 == Tiles::kStages ? 0 : stage + 1;
      ptx::wgmma_wait<1>();
    }
    group.wait();
    group.write(out, grid.at(index));
  }
}

template <class T, Layout a, Layout b>
using LargeGroupTiles = GroupTiles<T, a, b, 256, 4>;  // 192 KiB
template <class T, Layout a, Layout b>
using SmallGroupTiles = GroupTiles<T, a, b, 128, 4>;  // 128 KiB

}  // namespace levin::kernels::cuda
