#pragma once
// Rung 8, which ships for float32: the next tiles are copied while this one is multiplied.
// Idea: cp.async copies tiles of A and B into a ring of buffers in shared memory (two make the classic double buffer),
// bypassing the registers; one barrier per tile is left. It also copies single floats, so that an operand that runs
// along k is transposed during the copy, and any strides, sizes and windows of a convolution are supported. Changes
// against rung 7: global memory's latency is hidden; no tile waits for its own loads. Bound: the multipliers.
// Small problems use a smaller tile, and K is split if the tiles would not fill the device.

#include "kernels/cuda/base/ptx.h"
#include "kernels/cuda/matmul/operands.cuh"
#include "kernels/cuda/sgemm/07_warp_tiles.cuh"

namespace levin::kernels::cuda {

/// Multiplies tiles on the CUDA cores.
template <int M, int N, int RowGroups, int ColumnGroups>
struct FloatWarps {
  using Tiles = WarpTiles<M, N, RowGroups, ColumnGroups>;
  static constexpr int kM = M, kN = N, kDepth = 16, kThreads = Tiles::kThreads;
  static constexpr int kResident = kThreads == 256 ? 2 : 4;  // minimum of blocks per multiprocessor: 128 registers
  static constexpr int kPad = 4;                             // 8 steps x 4 lines stored by a warp use all 32 banks
  Tiles own;
  float sums[Tiles::kRows][Tiles::kColumns] = {};

  __device__ void multiply(const float* a_tile, const float* b_tile) {
    LEVIN_PRAGMA_UNROLL
    for (int s = 0; s < kDepth; ++s) own.multiply(sums, a_tile + s * (M + kPad), b_tile + s * (N + kPad));
  }
  template <class Out>
  __device__ void write(const Out& out, const TilePlace& place, int row, int column) const {
    own.write(out, place, row, column, sums);
  }
};

/// A thread's part in copying an operand's tiles of Lines x Depth to shared memory, as (k, line).
template <class Source, int Lines, int Depth, int Pitch, int Threads>
struct AsyncTile {
  static constexpr Access kAccess = Source::kAccess;
  static constexpr int kStepsAtOnce = 8;  // along_k: 8 steps x 4 lines per warp, 32 bytes of each line
  static constexpr int kLinesAtOnce = Threads / kStepsAtOnce;
  static constexpr int kOwnLines = kAccess == Access::along_k ? Lines / kLinesAtOnce : 1;
  using Reader = typename Source::Reader;
  static_assert(Lines % kLinesAtOnce == 0 && Depth % kStepsAtOnce == 0 && Threads % Lines == 0);

  Reader reader;
  typename Reader::Line own[kOwnLines];
  int inside = 4;  ///< with vectors: number of the thread's four lines that exist

  __device__ AsyncTile(const Source& source, std::int64_t batch, int first) : reader(source.reader(batch)) {
    const int thread = static_cast<int>(threadIdx.x);
    if constexpr (kAccess == Access::vectors) {
      const int line = first + thread % (Lines / 4) * 4, left = static_cast<int>(reader.lines) - line;
      own[0] = reader.data + line;
      inside = left < 0 ? 0 : left < 4 ? left : 4;
    } else {
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kOwnLines; ++i) {
        const int line = kAccess == Access::along_k ? thread / kStepsAtOnce + i * kLinesAtOnce : thread % Lines;
        own[i] = reader.line(first + line);
      }
    }
  }

  /// Starts copying steps [k, k + Depth), of which those below k_end exist. A copy of 0 bytes reads nothing.
  __device__ void copy(float* tile, int k, int k_end) const {
    const int thread = static_cast<int>(threadIdx.x);
    if constexpr (kAccess == Access::vectors) {
      const int line = thread % (Lines / 4) * 4;
      LEVIN_PRAGMA_UNROLL
      for (int pass = 0; pass < Depth * Lines / 4 / Threads; ++pass) {
        const int s = thread / (Lines / 4) + pass * (Threads * 4 / Lines);
        ptx::cp_async16(tile + s * Pitch + line, own[0] + reader.step(k + s), k + s < k_end ? inside * 4 : 0);
      }
    } else if constexpr (kAccess == Access::along_k) {
      const int line = thread / kStepsAtOnce;
      LEVIN_PRAGMA_UNROLL
      for (int pass = 0; pass < Depth / kStepsAtOnce; ++pass) {
        const int s = thread % kStepsAtOnce + pass * kStepsAtOnce;
        const auto step = reader.step(k + s);
        LEVIN_PRAGMA_UNROLL
        for (int i = 0; i < kOwnLines; ++i)
          copy_one(tile + s * Pitch + line + i * kLinesAtOnce, k + s < k_end ? reader.at(own[i], step) : nullptr);
      }
    } else {
      LEVIN_PRAGMA_UNROLL
      for (int pass = 0; pass < Depth * Lines / Threads; ++pass) {
        const int s = thread / Lines + pass * (Threads / Lines);
        copy_one(tile + s * Pitch + thread % Lines, k + s < k_end ? reader.at(own[0], reader.step(k + s)) : nullptr);
      }
    }
  }

 private:
  __device__ static void copy_one(float* to, const float* from) { ptx::cp_async4(to, from, from ? 4 : 0); }
};

template <class Warps, int Stages>
constexpr std::size_t sgemm_shared_bytes() {
  return sizeof(float) * Stages * Warps::kDepth * (Warps::kM + Warps::kN + 2 * Warps::kPad);
}

template <class Warps, int Stages, class A, class B, class Out>
__global__ void __launch_bounds__(Warps::kThreads, Warps::kResident)
    sgemm_async_stages(A a_source, B b_source, Out out, TileGrid grid, int k_size) {
  constexpr int kDepth = Warps::kDepth, kThreads = Warps::kThreads;
  constexpr int kPitchA = Warps::kM + Warps::kPad, kPitchB = Warps::kN + Warps::kPad;
  constexpr int kStage = kDepth * (kPitchA + kPitchB);
  float* shared = dynamic_shared<float>();  // (stage, A (k, row) then B (k, column))
  const TilePlace place = grid.at(blockIdx.x);
  const int row = place.row * Warps::kM, column = place.column * Warps::kN;
  const int k_part = static_cast<int>(grid.k_part), k_begin = place.split * k_part;
  const int k_end = k_size - k_begin < k_part ? k_size : k_begin + k_part;
  const AsyncTile<A, Warps::kM, kDepth, kPitchA, kThreads> a(a_source, place.batch, row);
  const AsyncTile<B, Warps::kN, kDepth, kPitchB, kThreads> b(b_source, place.batch, column);
  const int tiles = static_cast<int>(ceil_div(k_end - k_begin, kDepth));

  const auto fetch = [&](int tile) {  // an empty group keeps the count when no tile is left
    if (tile < tiles) {
      float* stage = shared + tile % Stages * kStage;
      a.copy(stage, k_begin + tile * kDepth, k_end);
      b.copy(stage + kDepth * kPitchA, k_begin + tile * kDepth, k_end);
    }
    ptx::cp_async_commit();
  };
  LEVIN_PRAGMA_UNROLL
  for (int tile = 0; tile < Stages - 1; ++tile) fetch(tile);
  Warps warps;
  for (int tile = 0; tile < tiles; ++tile) {
    ptx::cp_async_wait<Stages - 2>();
    __syncthreads();  // all have copied this tile and read the one that the next overwrites
    fetch(tile + Stages - 1);
    const float* stage = shared + tile % Stages * kStage;
    warps.multiply(stage, stage + kDepth * kPitchA);
  }
  warps.write(out, place, row, column);
}

using LargeFloatWarps = FloatWarps<128, 128, 2, 2>;  // 256 threads
using SmallFloatWarps = FloatWarps<64, 64, 1, 2>;    // 128 threads
inline constexpr int kFloatStages = 3;

/// If K is split, the sums of its parts lie in `scratch`, which outlives the launch.
template <class Warps, class A, class B, class Out>
void launch_sgemm(const A& a, const B& b, const Out& out, const TileGrid& grid, std::int64_t k, const Stream& stream) {
  launch(sgemm_async_stages<Warps, kFloatStages, A, B, Out>,
         {.grid = static_cast<unsigned>(grid.count()),
          .block = Warps::kThreads,
          .shared = sgemm_shared_bytes<Warps, kFloatStages>(),
          .stream = stream},
         a, b, out, grid, k);
}

}  // namespace levin::kernels::cuda
