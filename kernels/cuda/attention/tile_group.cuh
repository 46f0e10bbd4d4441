#pragma once
// Tiles of 16-bit matrices for the warpgroup rungs: rows of D columns in shared memory as wgmma reads them. A tile
// serves as rows, for a product with the rows of another, and as columns, for a product with weights; the weights stay
// in registers, where 64 x 16 sums already have the layout of an operand A.

#include "kernels/cuda/attention/problem.cuh"
#include "kernels/cuda/attention/tile_half.cuh"
#include "kernels/cuda/matmul/choice.h"

#include <algorithm>
#include <initializer_list>

namespace levin::kernels::cuda {

/// A tile (Rows, D): blocks of 64 columns, each with rows of 128 bytes whose chunks of 16 bytes are permuted.
template <class T_, int Rows, int D>
struct GroupRows {
  using T = T_;
  static constexpr int kRows = Rows, kElements = Rows * D, kBlock = Rows * 64;  // elements of 64 columns
  static_assert(D % 64 == 0 && Rows % 64 == 0);

  /// Returns the offset of the chunk that begins at (row, column).
  __device__ static int at(int row, int column) {
    return column / 64 * kBlock + row * 64 + (column % 64 / 8 ^ row % 8) * 8;
  }
  /// Returns 16 columns from `column` on of the rows from `row` on, an operand along k.
  __device__ static ptx::SharedOperand rows(const T* tile, int row, int column) {
    return ptx::shared_operand(tile + column / 64 * kBlock + row * 64, kBlock * 2).plus(column % 64 * 2);
  }
  /// Returns all columns of 16 rows from `row` on, an operand along the lines.
  __device__ static ptx::SharedOperand columns(const T* tile, int row) {
    return ptx::shared_operand(tile + row * 64, kBlock * 2);
  }

  /// Starts sums (64, 8 N) = a b^T over all columns: 64 rows of a from `row` on, and the first 8 N rows of b, which is
  /// this tile; A is the type of a's tile.
  template <class A, int N>
  __device__ static void dot(float (&sums)[N][4], const T* a, int row, const T* b) {
    LEVIN_PRAGMA_UNROLL
    for (int step = 0; step < D; step += 16)
      ptx::wgmma_m64k16<T, false, false>(sums, A::rows(a, row, step), rows(b, 0, step), step > 0);
  }
  /// Starts sums (64, D) += weights (64, Rows) b.
  template <int N>
  __device__ static void add_product(float (&sums)[N][4], const std::uint32_t (&weights)[Rows / 16][4], const T* b) {
    static_assert(N == D / 8);
    LEVIN_PRAGMA_UNROLL
    for (int step = 0; step < Rows / 16; ++step)
      ptx::wgmma_m64k16<T, true>(sums, weights[step], columns(b, 16 * step), true);
  }
};

/// Packs sums into operands A of 16 columns each.
template <class T, int N>
__device__ void pack_weights(std::uint32_t (&weights)[N / 2][4], const float (&sums)[N][4]) {
  LEVIN_PRAGMA_UNROLL
  for (int step = 0; step < N / 2; ++step) {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float* pair = &sums[2 * step + i / 2][i % 2 * 2];
      weights[step][i] = pack_pair<T>(pair[0], pair[1]);
    }
  }
}

/// A thread's part in copying a matrix's rows to tiles, one tile of rows after the other. The rows are vector_ready.
template <class Tile, int Threads, int D>
struct GroupCopy {
  using T = typename Tile::T;
  static constexpr int kChunks = D / 8, kRowsAtOnce = Threads / kChunks, kCopies = Tile::kRows / kRowsAtOnce;
  static_assert(Tile::kRows % kRowsAtOnce == 0 && kRowsAtOnce % 8 == 0);

  const T* from;       ///< this thread's first chunk of the next tile
  std::int64_t pitch;  ///< distance of rows
  int rows_left;       ///< rows left in the matrix from that chunk's row on
  int columns_left;    ///< columns left in the matrix from the chunk's first on

  __device__ GroupCopy(const Operand<T>& x, std::int64_t problem, int first, int rows, int width)
      : from(x.of(problem) + (first + row()) * x.line + column()),
        pitch(x.line),
        rows_left(rows - first - row()),
        columns_left(width - column()) {}

  /// Starts copying the next rows; missing rows and columns become zeros.
  __device__ void next(T* tile) {
    T* to = tile + Tile::at(row(), column());
    const T* source = from;
    // Not `inside == 8`, which ptxas 13.0 miscompiles, as in HalfCopy.
    if (columns_left >= 8 && (kCopies - 1) * kRowsAtOnce < rows_left) {
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kCopies; ++i) {
        ptx::cp_async16(to + i * kRowsAtOnce * 64, source);
        source += kRowsAtOnce * pitch;
      }
    } else {
      const int inside = columns_left < 0 ? 0 : columns_left < 8 ? columns_left : 8;
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kCopies; ++i) {
        ptx::cp_async16(to + i * kRowsAtOnce * 64, source, i * kRowsAtOnce < rows_left ? inside * 2 : 0);
        source += kRowsAtOnce * pitch;
      }
    }
    from += Tile::kRows * pitch;
    rows_left -= Tile::kRows;
  }

 private:
  __device__ static int row() { return static_cast<int>(threadIdx.x) / kChunks; }
  __device__ static int column() { return static_cast<int>(threadIdx.x) % kChunks * 8; }
};

/// True if the warpgroup rungs can read these matrices of `dtype` on the stream's device.
inline bool fits_warpgroups(DType dtype, std::initializer_list<TensorView> matrices, const Stream& stream) {
  if (size_of(dtype) != 2 || attribute_of(stream, cudaDevAttrComputeCapabilityMajor) != 9) return false;
  return std::all_of(matrices.begin(), matrices.end(), [](const TensorView& x) {
    return vector_ready(detail::rows_of<std::uint16_t>(x)) && x.size(x.dim() - 2) > 0;
  });
}

/// True if the tiles of the warpgroup rungs, 128 rows by 128, are at least half full.
template <class Args>
bool is_long(const Args& a) {
  const int rows = a.q.dim() - 2;
  return a.q.size(rows) >= 64 && a.k.size(rows) >= 64;
}

}  // namespace levin::kernels::cuda
