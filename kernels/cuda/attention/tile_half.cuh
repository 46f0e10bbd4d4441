#pragma once
// Tiles of 16-bit matrices for the flash rungs: rows of D columns in swizzled shared memory, in the matrix's own order.
// A tile is read as rows, for a product with the rows of another, or as columns, for a product with weights; the
// weights stay in the registers of the former product, where 16 x 16 sums already have the layout of a fragment of A.

#include "kernels/cuda/hgemm/tile.cuh"

#include <cstring>

namespace levin::kernels::cuda {

/// Packs two elements of T into a register, `low` in its lower half.
template <class T>
__device__ std::uint32_t pack_pair(float low, float high) {
  std::uint32_t bits;
  if constexpr (std::is_same_v<T, __half>) {
    const __half2 pair = __floats2half2_rn(low, high);
    std::memcpy(&bits, &pair, sizeof bits);
  } else {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    std::memcpy(&bits, &pair, sizeof bits);
  }
  return bits;
}

/// A warp's sums: tiles of 16 x 8 in the layout of mma, `Rows` of them down and `Columns` across. Lane 4 g + t holds
/// rows g and g + 8, columns 2 t and 2 t + 1 of each.
template <int Rows, int Columns>
using WarpTiles = float[Rows][Columns][4];

template <class T_, int Rows, int D>
struct HalfRows {
  using T = T_;
  using AsRows = HalfTile<T, Layout::along_k, Rows, D, true>;
  using AsColumns = HalfTile<T, Layout::along_lines, D, Rows, true>;
  static constexpr int kRows = Rows, kElements = Rows * D, kThreads = 128;

  /// Starts copying `rows` rows of `width` elements and zeros to the rest of the tile. `vectors`: the rows are
  /// vector_ready.
  __device__ static void copy(T* tile, const T* from, std::int64_t pitch, int rows, int width, bool vectors) {
    constexpr int kChunks = D / 8;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < Rows * kChunks / kThreads; ++i) {
      const int t = static_cast<int>(threadIdx.x) + i * kThreads, row = t / kChunks, column = t % kChunks * 8;
      const int left = row < rows ? width - column : 0, inside = left < 0 ? 0 : left < 8 ? left : 8;
      const T* source = inside > 0 ? from + row * pitch + column : from;
      T* to = tile + AsRows::at(row, column);
      if (vectors) {
        ptx::cp_async16(to, source, inside * 2);
      } else {
        Pack<T, 8> eight;
        LEVIN_PRAGMA_UNROLL
        for (int e = 0; e < 8; ++e) eight[e] = e < inside ? source[e] : convert<T>(0.0f);
        pack_at<8>(to) = eight;
      }
    }
  }

  /// sums += a[first row ...] b^T over the first `width` columns; b is this tile, `A` the type of a's tile.
  template <class A, int M, int N>
  __device__ static void dot(WarpTiles<M, N>& sums, const T* a, int row, const T* b, int width) {
    LEVIN_PRAGMA_UNROLL
    for (int step = 0; step < D; step += 16) {
      if (step >= width) break;
      std::uint32_t left[M][4];
      LEVIN_PRAGMA_UNROLL
      for (int m = 0; m < M; ++m) A::AsRows::load_a(left[m], a, row + 16 * m, step);
      LEVIN_PRAGMA_UNROLL
      for (int n = 0; n < N; n += 2) {
        std::uint32_t right[4];
        AsRows::load_b(right, b, 8 * n, step);
        multiply(sums, left, right, n);
      }
    }
  }

  /// sums (., D) += weights (., Rows) b (Rows, width); b is this tile.
  template <int M>
  __device__ static void add_product(WarpTiles<M, D / 8>& sums, const WarpTiles<M, Rows / 8>& weights, const T* b,
                                     int width) {
    LEVIN_PRAGMA_UNROLL
    for (int step = 0; step < Rows; step += 16) {
      std::uint32_t left[M][4];
      LEVIN_PRAGMA_UNROLL
      for (int m = 0; m < M; ++m) {
        LEVIN_PRAGMA_UNROLL
        for (int i = 0; i < 4; ++i) {
          const float* pair = &weights[m][step / 8 + i / 2][i % 2 * 2];
          left[m][i] = pack_pair<T>(pair[0], pair[1]);
        }
      }
      LEVIN_PRAGMA_UNROLL
      for (int column = 0; column < D; column += 16) {
        if (column >= width) break;
        std::uint32_t right[4];
        AsColumns::load_b(right, b, column, step);
        multiply(sums, left, right, column / 8);
      }
    }
  }

  /// Adds left right to the column tiles n and n + 1 of sums.
  template <int M, int N>
  __device__ static void multiply(WarpTiles<M, N>& sums, const std::uint32_t (&left)[M][4],
                                  const std::uint32_t (&right)[4], int n) {
    const std::uint32_t low[2] = {right[0], right[1]}, high[2] = {right[2], right[3]};
    LEVIN_PRAGMA_UNROLL
    for (int m = 0; m < M; ++m) {
      ptx::mma_m16n8k16<T>(sums[m][n], left[m], low, sums[m][n]);
      ptx::mma_m16n8k16<T>(sums[m][n + 1], left[m], high, sums[m][n + 1]);
    }
  }
};

template <int M, int N>
__device__ void clear(WarpTiles<M, N>& sums) {
  LEVIN_PRAGMA_UNROLL
  for (int m = 0; m < M; ++m) {
    LEVIN_PRAGMA_UNROLL
    for (int n = 0; n < N; ++n) {
      LEVIN_PRAGMA_UNROLL
      for (int c = 0; c < 4; ++c) sums[m][n][c] = 0;
    }
  }
}

/// out (rows, width) = factor[m][half] sums, for the part within the matrix; the warp's rows begin at `row`.
template <class T, int M, int N>
__device__ void store_tiles(T* out, const WarpTiles<M, N>& sums, const float (&factor)[M][2], int row, int rows,
                            int width, std::int64_t pitch) {
  const int g = ptx::lane_id() / 4, t = ptx::lane_id() % 4;
  const bool pairs = pitch % 2 == 0 && width % 2 == 0 && reinterpret_cast<std::uintptr_t>(out) % (2 * sizeof(T)) == 0;
  LEVIN_PRAGMA_UNROLL
  for (int m = 0; m < M; ++m) {
    LEVIN_PRAGMA_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int r = row + 16 * m + 8 * half + g;
      if (r >= rows) continue;
      T* to = out + r * pitch;
      LEVIN_PRAGMA_UNROLL
      for (int n = 0; n < N; ++n) {
        const int column = 8 * n + 2 * t;
        if (column >= width) break;
        Pack<T, 2> pair;
        LEVIN_PRAGMA_UNROLL
        for (int c = 0; c < 2; ++c) pair[c] = convert<T>(factor[m][half] * sums[m][n][2 * half + c]);
        if (pairs) {
          pack_at<2>(to + column) = pair;
        } else {
          to[column] = pair[0];
          if (column + 1 < width) to[column + 1] = pair[1];
        }
      }
    }
  }
}

}  // namespace levin::kernels::cuda
