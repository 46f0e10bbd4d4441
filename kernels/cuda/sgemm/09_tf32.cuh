#pragma once
// Rung 9: tensor cores, on operands rounded to TF32.
// Idea: the same tiles and the same ring of buffers, but a warp multiplies 16 x 8 x 8 per instruction. Operands keep 10
// of float's 23 bits of mantissa, so this is not float32 arithmetic: used only if allow_tf32 is set. Changes against
// rung 8: the multiplication. Bound: shared memory, as ldmatrix cannot transpose fragments of 32 bits.

#include "kernels/cuda/sgemm/08_async_stages.cuh"

namespace levin::kernels::cuda {

/// Warps of 64 x 32; lane = 4 g + t holds the elements that mma_m16n8k8 requires.
struct Tf32Warps {
  static constexpr int kM = 128, kN = 128, kDepth = 16, kThreads = 256, kResident = 2;
  static constexpr int kPad = 8;  // reads of fragments, 4 steps x 8 lines, use all 32 banks
  static constexpr int kRowTiles = 4, kColumnTiles = 4;
  int row, column;  ///< of the warp
  int g, t;
  float sums[kRowTiles][kColumnTiles][4] = {};

  __device__ Tf32Warps() {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    row = warp / 4 * 64, column = warp % 4 * 32;
    g = lane / 4, t = lane % 4;
  }

  __device__ void multiply(const float* a_tile, const float* b_tile) {
    LEVIN_PRAGMA_UNROLL
    for (int s = 0; s < kDepth; s += 8) {
      std::uint32_t a[kRowTiles][4], b[kColumnTiles][2];
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kRowTiles; ++i) {
        LEVIN_PRAGMA_UNROLL
        for (int r = 0; r < 4; ++r)
          a[i][r] = ptx::round_to_tf32(a_tile[(s + t + r / 2 * 4) * (kM + kPad) + row + i * 16 + g + r % 2 * 8]);
      }
      LEVIN_PRAGMA_UNROLL
      for (int j = 0; j < kColumnTiles; ++j) {
        LEVIN_PRAGMA_UNROLL
        for (int r = 0; r < 2; ++r)
          b[j][r] = ptx::round_to_tf32(b_tile[(s + t + r * 4) * (kN + kPad) + column + j * 8 + g]);
      }
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kRowTiles; ++i) {
        LEVIN_PRAGMA_UNROLL
        for (int j = 0; j < kColumnTiles; ++j) ptx::mma_m16n8k8<ptx::tf32>(sums[i][j], a[i], b[j], sums[i][j]);
      }
    }
  }

  template <class Out>
  __device__ void write(const Out& out, const TilePlace& place, int first_row, int first_column) const {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kRowTiles; ++i) {
      LEVIN_PRAGMA_UNROLL
      for (int j = 0; j < kColumnTiles; ++j) {
        LEVIN_PRAGMA_UNROLL
        for (int half = 0; half < 2; ++half) {
          const float two[2] = {sums[i][j][2 * half], sums[i][j][2 * half + 1]};
          out.write(place, first_row + row + i * 16 + g + half * 8, first_column + column + j * 8 + 2 * t, two);
        }
      }
    }
  }
};

}  // namespace levin::kernels::cuda
