#pragma once
// Tiles of float32 matrices for the flash rungs: 64 rows of D columns in shared memory, in the matrix's own order, and
// their products, accumulated in registers. 128 threads form 8 x 16: thread (y, x) works on rows 8 y to 8 y + 7.

#include "kernels/cuda/base/ptx.h"
#include "kernels/cuda/matmul/problem.cuh"

namespace levin::kernels::cuda {

/// Rows are padded by 16 bytes, so that 8 of them lie in different banks.
template <int D>
struct FloatTile {
  static constexpr int kRows = 64, kThreads = 128, kPitch = D + 4, kElements = kRows * kPitch;
  static constexpr int kSums = D / 16;  ///< a thread's columns in products (64, D): 4 x + 64 h + c, h < D / 64, c < 4
  using Scores = float[8][4];           ///< of rows 8 y + i and columns x + 16 j
  using Sums = float[8][kSums];
  using Four = Pack<float, 4>;

  __device__ static int y() { return static_cast<int>(threadIdx.x) / 16; }
  __device__ static int x() { return static_cast<int>(threadIdx.x) % 16; }

  /// Starts copying `rows` rows of `width` elements and zeros to the rest of the tile. `vectors`: the rows are
  /// vector_ready.
  __device__ static void copy(float* tile, const float* from, std::int64_t pitch, int rows, int width, bool vectors) {
    constexpr int kChunks = D / 4;
    for (int t = static_cast<int>(threadIdx.x); t < kRows * kChunks; t += kThreads) {
      const int row = t / kChunks, column = t % kChunks * 4;
      const int left = row < rows ? width - column : 0, inside = left < 0 ? 0 : left < 4 ? left : 4;
      const float* source = inside > 0 ? from + row * pitch + column : from;
      float* to = tile + row * kPitch + column;
      if (vectors) {
        ptx::cp_async16(to, source, inside * 4);
      } else {
        LEVIN_PRAGMA_UNROLL
        for (int i = 0; i < 4; ++i) ptx::cp_async4(to + i, i < inside ? source + i : from, i < inside ? 4 : 0);
      }
    }
  }

  __device__ static const Four& four(const float* p) { return vector_at<Four>(p); }

  /// scores = a b^T over the first `width` columns of both tiles.
  __device__ static void dot(Scores& scores, const float* a, const float* b, int width) {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < 8; ++i) {
      LEVIN_PRAGMA_UNROLL
      for (int j = 0; j < 4; ++j) scores[i][j] = 0;
    }
    const float *rows = a + 8 * y() * kPitch, *columns = b + x() * kPitch;
    for (int e = 0; e < width; e += 4) {
      Four right[4];
      LEVIN_PRAGMA_UNROLL
      for (int j = 0; j < 4; ++j) right[j] = four(columns + 16 * j * kPitch + e);
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < 8; ++i) {
        const Four left = four(rows + i * kPitch + e);
        LEVIN_PRAGMA_UNROLL
        for (int j = 0; j < 4; ++j) {
          LEVIN_PRAGMA_UNROLL
          for (int c = 0; c < 4; ++c) scores[i][j] += left[c] * right[j][c];
        }
      }
    }
  }
};

/// The tile for the scores, 64 x 64.
using FloatScores = FloatTile<64>;

/// Stores a thread's scores; others may read them after a barrier.
__device__ inline void store_scores(float* tile, const FloatScores::Scores& scores) {
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < 8; ++i) {
    LEVIN_PRAGMA_UNROLL
    for (int j = 0; j < 4; ++j)
      tile[(8 * FloatScores::y() + i) * FloatScores::kPitch + FloatScores::x() + 16 * j] = scores[i][j];
  }
}

/// sums (64, D) += weights (64, n) b (n, D), where n is rounded up to a multiple of 4.
template <int D>
__device__ void add_product(typename FloatTile<D>::Sums& sums, const float* weights, const float* b, int n) {
  using Tile = FloatTile<D>;
  const float* rows = weights + 8 * Tile::y() * FloatScores::kPitch;
  for (int k = 0; k < n; k += 4) {
    typename Tile::Four left[8];
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < 8; ++i) left[i] = Tile::four(rows + i * FloatScores::kPitch + k);
    LEVIN_PRAGMA_UNROLL
    for (int step = 0; step < 4; ++step) {
      LEVIN_PRAGMA_UNROLL
      for (int h = 0; h < D / 64; ++h) {
        const typename Tile::Four right = Tile::four(b + (k + step) * Tile::kPitch + 64 * h + 4 * Tile::x());
        LEVIN_PRAGMA_UNROLL
        for (int i = 0; i < 8; ++i) {
          LEVIN_PRAGMA_UNROLL
          for (int c = 0; c < 4; ++c) sums[i][4 * h + c] += left[i][step] * right[c];
        }
      }
    }
  }
}

/// sums (64, D) += weights^T (64, n) b (n, D), weights (n, 64).
template <int D>
__device__ void add_transposed_product(typename FloatTile<D>::Sums& sums, const float* weights, const float* b, int n) {
  using Tile = FloatTile<D>;
  for (int k = 0; k < n; ++k) {
    const float* row = weights + k * FloatScores::kPitch + 8 * Tile::y();
    const typename Tile::Four low = Tile::four(row), high = Tile::four(row + 4);
    LEVIN_PRAGMA_UNROLL
    for (int h = 0; h < D / 64; ++h) {
      const typename Tile::Four right = Tile::four(b + k * Tile::kPitch + 64 * h + 4 * Tile::x());
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < 4; ++i) {
        LEVIN_PRAGMA_UNROLL
        for (int c = 0; c < 4; ++c) {
          sums[i][4 * h + c] += low[i] * right[c];
          sums[4 + i][4 * h + c] += high[i] * right[c];
        }
      }
    }
  }
}

/// out (rows, width) = factor[i] sums, for the part of the tile within the matrix.
template <int D>
__device__ void store_sums(float* out, const typename FloatTile<D>::Sums& sums, const float (&factor)[8], int rows,
                           int width, std::int64_t pitch) {
  using Tile = FloatTile<D>;
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < 8; ++i) {
    LEVIN_PRAGMA_UNROLL
    for (int c = 0; c < Tile::kSums; ++c) {
      const int row = 8 * Tile::y() + i, column = c / 4 * 64 + 4 * Tile::x() + c % 4;
      if (row < rows && column < width) out[row * pitch + column] = factor[i] * sums[i][c];
    }
  }
}

}  // namespace levin::kernels::cuda
