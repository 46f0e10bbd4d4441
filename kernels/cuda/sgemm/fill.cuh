#pragma once
// Fills shared memory with a tile of an operand, and with zeros beyond the operand.

#include "kernels/cuda/matmul/problem.cuh"

namespace levin::kernels::cuda {

/// The part of an operand that a tile holds: elements [line, line + Lines) x [k, k + Depth).
template <class T>
struct TileSource {
  const T* data;  ///< for this product of the batch
  std::int64_t line_stride, step_stride;
  std::int64_t line, lines;  ///< the tile's first line; the operand's number of lines
  std::int64_t k_end;

  __device__ TileSource(const Operand<T>& x, std::int64_t batch, std::int64_t first_line, std::int64_t line_count,
                        std::int64_t end)
      : data(x.of(batch)), line_stride(x.line), step_stride(x.step), line(first_line), lines(line_count), k_end(end) {}
};

/// Copies element by element with any strides; neighbouring threads run along the stride of 1. Element (i, s) of the
/// tile goes to tile[i * line_pitch + s * step_pitch].
template <int Lines, int Depth, int Threads, class T>
__device__ void fill_tile(T* tile, int line_pitch, int step_pitch, const TileSource<T>& x, std::int64_t k) {
  const bool along_k = x.step_stride == 1;
  LEVIN_PRAGMA_UNROLL
  for (int pass = 0; pass < ceil_div(Lines * Depth, Threads); ++pass) {
    const int e = static_cast<int>(threadIdx.x) + pass * Threads;
    if (Lines * Depth % Threads != 0 && e >= Lines * Depth) break;
    const int i = along_k ? e / Depth : e % Lines, s = along_k ? e % Depth : e / Lines;
    const bool inside = x.line + i < x.lines && k + s < x.k_end;
    tile[i * line_pitch + s * step_pitch] =
        inside ? x.data[(x.line + i) * x.line_stride + (k + s) * x.step_stride] : convert<T>(0);
  }
}

/// Loads four neighbours, of which `inside` exist.
__device__ inline Pack<float, 4> load_four(const float* from, std::int64_t inside) {
  if (inside >= 4) return pack_at<4>(from);
  Pack<float, 4> v;
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < 4; ++i) v[i] = i < inside ? from[i] : 0.0f;
  return v;
}

/// Copies by loads of 16 bytes, for operands that are vector_ready(). Element (i, s) goes to tile[s * pitch + i]: the
/// tile is transposed if the operand runs along k.
template <int Lines, int Depth, int Threads>
__device__ void fill_vectors(float* tile, int pitch, const TileSource<float>& x, std::int64_t k) {
  const bool along_k = x.step_stride == 1;
  LEVIN_PRAGMA_UNROLL
  for (int e = static_cast<int>(threadIdx.x); e < Lines * Depth / 4; e += Threads) {
    const int i = along_k ? e / (Depth / 4) : e % (Lines / 4) * 4;
    const int s = along_k ? e % (Depth / 4) * 4 : e / (Lines / 4);
    const std::int64_t lines_left = x.lines - x.line - i, steps_left = x.k_end - k - s;
    const std::int64_t inside = lines_left <= 0 || steps_left <= 0 ? 0 : along_k ? steps_left : lines_left;
    const Pack<float, 4> v = load_four(x.data + (x.line + i) * x.line_stride + (k + s) * x.step_stride, inside);
    if (along_k) {
      LEVIN_PRAGMA_UNROLL
      for (int j = 0; j < 4; ++j) tile[(s + j) * pitch + i] = v[j];
    } else {
      pack_at<4>(tile + s * pitch + i) = v;
    }
  }
}

}  // namespace levin::kernels::cuda
