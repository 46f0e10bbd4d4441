#pragma once
// Rung 9, which ships for large products of 16-bit floats on GPUs of compute capability 9.
// Idea: wgmma, by which four warps multiply 64 rows by up to 256 columns straight from shared memory, without ldmatrix
// and fragments in registers, while four other warps do nothing but copy. Changes against rung 7: a block has two
// multiplying warpgroups, each with 64 rows of the tile, and a copying warp for each of four buffers; they meet at two
// barriers for each buffer (it has arrived; it is free again). Operands along the lines lie in blocks of 64 lines, as
// wgmma reads them. Bound: the latency and the number of the copying warps' instructions.

#include "kernels/cuda/hgemm/tile.cuh"

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

  /// Starts copying lines [line, line + Lines) and steps [k, k + 64) of an operand by one warp. Of these, the lines
  /// below `lines` and the first `steps` steps exist; the rest are zeros.
  __device__ static void copy(T* tile, const Operand<T>& x, std::int64_t batch, int line, int lines, int k, int steps) {
    constexpr int kAtOnce = 4, kCopies = kRows / kAtOnce;  // rows, of eight lanes each
    const int row = ptx::lane_id() / 8, column = ptx::lane_id() % 8 * 8;
    const std::int64_t pitch = kAlongLines ? x.step : x.line;
    const int rows_left = (kAlongLines ? steps : lines - line) - row;
    const T* from = x.of(batch) + ((kAlongLines ? k : line) + row) * pitch + (kAlongLines ? line : k) + column;
    for (int block = 0; block < kColumns; block += 64) {
      T* const even = tile + at(row, block + column);  // rows eight apart are permuted alike
      T* const odd = tile + at(row + kAtOnce, block + column) - kAtOnce * 64;
      const int columns_left = (kAlongLines ? lines - line - block : steps) - column;
      const T* source = from + block;
      if (columns_left >= 8 && (kCopies - 1) * kAtOnce < rows_left) {  // all inside
        LEVIN_PRAGMA_UNROLL
        for (int i = 0; i < kCopies; ++i, source += kAtOnce * pitch)
          ptx::cp_async16((i % 2 == 0 ? even : odd) + i * kAtOnce * 64, source);
      } else {
        const int across = columns_left < 0 ? 0 : columns_left < 8 ? columns_left : 8;
        for (int i = 0; i < kCopies; ++i, source += kAtOnce * pitch) {  // a copy of 0 bytes reads nothing
          const int inside = i * kAtOnce < rows_left ? across : 0;
          ptx::cp_async16((i % 2 == 0 ? even : odd) + i * kAtOnce * 64, source, inside * 2);
        }
      }
    }
  }
};

/// The geometry of the rung: a tile of 128 x N, 64 rows for each multiplying warpgroup; a copying warp per stage.
template <class T_, Layout layout_a, Layout layout_b, int N>
struct GroupTiles {
  using T = T_;
  using A = GroupTile<T, layout_a, 128>;
  using B = GroupTile<T, layout_b, N>;
  static constexpr int kM = 128, kN = N, kDepth = 64, kStages = 4, kThreads = 256 + 32 * kStages;
  static constexpr int kStage = A::kElements + B::kElements;  // elements of both tiles
  static constexpr std::size_t kShared = sizeof(T) * kStage * kStages;
};

/// A multiplying warpgroup's sums: 64 rows of the block's tile.
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
    const int row = place.row * Tiles::kM + (warp - 4) * 16 + lane / 4;
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
  __device__ static int group() { return static_cast<int>(threadIdx.x) / 128 - 1; }
};

/// The barriers of a block, at which a copying warp meets the multiplying warpgroups: a stage has arrived, or is free.
template <class Tiles>
struct StageBarriers {
  static constexpr int kThreads = 256 + 32;
  __device__ static void wait_full(int stage) { ptx::named_barrier(1 + stage, kThreads); }
  __device__ static void set_full(int stage) { ptx::named_barrier_arrive(1 + stage, kThreads); }
  __device__ static void wait_free(int stage) { ptx::named_barrier(1 + Tiles::kStages + stage, kThreads); }
  __device__ static void set_free(int stage) { ptx::named_barrier_arrive(1 + Tiles::kStages + stage, kThreads); }
};

/// The tiles of K that a block multiplies: of one tile of C after the other.
struct GroupWork {
  int tiles_of_k;  ///< per tile of C; at least one, which is zeros if K is 0
  int total;

  __device__ GroupWork(const TileGrid& grid, int depth) {
    tiles_of_k = static_cast<int>(grid.k_part) / depth;
    if (tiles_of_k == 0) tiles_of_k = 1;
    total = static_cast<int>((grid.count() - 1 - blockIdx.x) / gridDim.x + 1) * tiles_of_k;
  }
};

/// A copying warp's work: the tiles of K that go to its stage. As in CUTLASS, no proxy fence stands between cp.async
/// and wgmma.
template <class Tiles>
__device__ void copy_stage(const Problem<typename Tiles::T>& p, const TileGrid& grid, const GroupWork& work, int stage,
                           typename Tiles::T* to) {
  using Barriers = StageBarriers<Tiles>;
  const int k_size = static_cast<int>(p.k), k_part = static_cast<int>(grid.k_part);
  for (int tile = stage; tile < work.total; tile += Tiles::kStages) {
    const TilePlace place = grid.at(blockIdx.x + tile / work.tiles_of_k * gridDim.x);
    const int done = tile % work.tiles_of_k * Tiles::kDepth, k = place.split * k_part + done;
    const int part_left = k_part - done, left = k_size - k < part_left ? k_size - k : part_left;
    if (tile >= Tiles::kStages) Barriers::wait_free(stage);
    Tiles::A::copy(to, p.a, place.batch, place.row * Tiles::kM, static_cast<int>(p.m), k, left);
    Tiles::B::copy(to + Tiles::A::kElements, p.b, place.batch, place.column * Tiles::kN, static_cast<int>(p.n), k, left);
    ptx::cp_async_wait_all();
    Barriers::set_full(stage);
  }
}

template <class Tiles, class Out>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    hgemm_warpgroups(Problem<typename Tiles::T> p, Out out, TileGrid grid) {
  using T = typename Tiles::T;
  using Barriers = StageBarriers<Tiles>;
  constexpr int kStages = Tiles::kStages;
  T* shared = dynamic_shared<T>();  // (stage, A's tile then B's)
  const GroupWork work(grid, Tiles::kDepth);
  if (threadIdx.x < 32 * kStages) {
    ptx::set_registers<72, false>();
    const int stage = ptx::warp_id();
    copy_stage<Tiles>(p, grid, work, stage, shared + stage * Tiles::kStage);
  } else {
    ptx::set_registers<216, true>();
    GroupSums<Tiles> group;
    int begun = 0, freed = 0;  // tiles of K
    for (auto index = static_cast<int>(blockIdx.x); index < grid.count(); index += static_cast<int>(gridDim.x)) {
      for (int tile = 0; tile < work.tiles_of_k; ++tile, ++begun) {
        Barriers::wait_full(begun % kStages);
        group.multiply(shared + begun % kStages * Tiles::kStage, tile == 0);
        ptx::wgmma_wait<1>();
        for (; freed < begun; ++freed) {  // all products but those of this tile have ended
          if (freed + kStages < work.total) Barriers::set_free(freed % kStages);
        }
      }
      group.wait();
      group.write(out, grid.at(index));
    }
  }
}

template <class T, Layout a, Layout b>
using LargeGroupTiles = GroupTiles<T, a, b, 256>;  // 192 KiB
template <class T, Layout a, Layout b>
using SmallGroupTiles = GroupTiles<T, a, b, 128>;  // 128 KiB

}  // namespace levin::kernels::cuda
