#pragma once
// Rung 3: FlashAttention (Dao, "FlashAttention-2", 2023), forward.
// Idea: a block holds some rows of q and loops over k and v in tiles of 64; a row's running maximum and sum let it
// accumulate its result before it has seen all scores, so that these never leave the registers. Changes against rung 2:
// one kernel, no scratch; tensor cores for the 16-bit floats, whose weights go from the accumulators of the first
// product to the operand of the second within the registers; the next k is copied while v is used and vice versa.
// Bound: the products, and for narrow heads the exponentials.

#include "kernels/cuda/attention/problem.cuh"
#include "kernels/cuda/attention/tile_float.cuh"
#include "kernels/cuda/attention/tile_half.cuh"
#include "kernels/cuda/base/warp.h"

namespace levin::kernels::cuda {

inline constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;
inline constexpr int kKeyTile = 64;

/// The part of a problem that a block computes. With a mask the longest rows come first.
struct FlashBlock {
  __device__ FlashBlock(const AttentionSizes& s, int tile) {
    const auto blocks = static_cast<int>(ceil_div(s.rows, tile));
    const auto number = static_cast<int>(blockIdx.x % static_cast<unsigned>(blocks));
    problem = blockIdx.x / static_cast<unsigned>(blocks);
    first = (s.causal ? blocks - 1 - number : number) * tile;
    rows = s.rows - first < tile ? s.rows - first : tile;
    columns = s.visible(first + rows - 1);
  }
  std::int64_t problem;
  int first, rows, columns;  ///< rows [first, first + rows) attend to columns [0, columns) at most
};

/// The online softmax of one row, in powers of 2.
struct RunningRow {
  float peak = -INFINITY, sum = 0;

  /// Includes a new maximum of scores times `scale`; returns the factor by which all earlier sums must be multiplied.
  __device__ float raise(float top, float scale) {
    const float next = fmaxf(peak, top * scale), factor = ptx::exp2_flushed(peak - next);
    peak = next;
    sum *= factor;
    return factor;
  }
  __device__ float weight(float score, float scale) {
    const float w = ptx::exp2_flushed(fmaf(score, scale, -peak));
    sum += w;
    return w;
  }
  __device__ float lse() const { return (peak + log2f(sum)) * kLn2; }
};

// ---- float32

/// Rows 8 y + i of the block's tile of scores; a row lies in 16 neighbouring lanes.
struct FloatSoftmax {
  RunningRow rows[8];

  /// Turns scores of columns x + 16 j into weights, 0 from limit[i] on; rescales the sums.
  template <int N>
  __device__ void advance(FloatScores::Scores& scores, float (&sums)[8][N], float scale, const int (&limit)[8]) {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < 8; ++i) {
      float top = -INFINITY;
      LEVIN_PRAGMA_UNROLL
      for (int j = 0; j < 4; ++j) {
        scores[i][j] = FloatScores::x() + 16 * j < limit[i] ? scores[i][j] : -INFINITY;
        top = fmaxf(top, scores[i][j]);
      }
      LEVIN_PRAGMA_UNROLL
      for (int offset = 8; offset > 0; offset /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
      const float factor = rows[i].raise(top, scale);
      LEVIN_PRAGMA_UNROLL
      for (int j = 0; j < 4; ++j) scores[i][j] = rows[i].weight(scores[i][j], scale);
      LEVIN_PRAGMA_UNROLL
      for (int c = 0; c < N; ++c) sums[i][c] *= factor;
    }
  }
  __device__ void finish() {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < 8; ++i) {
      LEVIN_PRAGMA_UNROLL
      for (int offset = 8; offset > 0; offset /= 2) rows[i].sum += __shfl_xor_sync(0xffffffffu, rows[i].sum, offset);
    }
  }
};

template <int D>
inline constexpr std::size_t kFlashFloatShared = sizeof(float) * (3 * FloatTile<D>::kElements + FloatScores::kElements);

template <int D>
__global__ void __launch_bounds__(128) flash_forward_float(AttentionProblem<float> p, bool vectors) {
  using Tile = FloatTile<D>;
  float* q = dynamic_shared<float>();    // (64, D)
  float* k = q + Tile::kElements;        // (64, D)
  float* v = k + Tile::kElements;        // (64, D)
  float* weights = v + Tile::kElements;  // (64, 64)
  const FlashBlock block(p, Tile::kRows);
  const float *from_k = p.k.of(block.problem), *from_v = p.v.of(block.problem);
  const auto copy_k = [&](int j) {
    if (j < block.columns) Tile::copy(k, from_k + j * p.k.line, p.k.line, p.columns - j, p.width, vectors);
    ptx::cp_async_commit();
  };
  const auto copy_v = [&](int j) {
    if (j < block.columns) Tile::copy(v, from_v + j * p.v.line, p.v.line, p.columns - j, p.values, vectors);
    ptx::cp_async_commit();
  };
  Tile::copy(q, p.q.of(block.problem) + block.first * p.q.line, p.q.line, block.rows, p.width, vectors);
  copy_k(0);
  copy_v(0);
  typename Tile::Sums sums = {};
  FloatSoftmax softmax;
  for (int j = 0; j < block.columns; j += kKeyTile) {
    ptx::cp_async_wait<1>();
    __syncthreads();
    FloatScores::Scores scores;
    Tile::dot(scores, q, k, p.width);
    int limit[8];
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < 8; ++i) limit[i] = p.visible(block.first + 8 * Tile::y() + i) - j;
    softmax.advance(scores, sums, p.scale * kLog2E, limit);
    store_scores(weights, scores);
    ptx::cp_async_wait<0>();
    __syncthreads();  // v and the weights are written, k may be overwritten
    copy_k(j + kKeyTile);
    const int left = block.columns - j;
    add_product<D>(sums, weights, v, left < kKeyTile ? left : kKeyTile);
    __syncthreads();  // v and the weights may be overwritten
    copy_v(j + kKeyTile);
  }
  ptx::cp_async_wait_all();
  softmax.finish();
  const std::int64_t first = block.problem * p.rows + block.first;
  float factor[8];
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < 8; ++i) {
    factor[i] = 1.0f / softmax.rows[i].sum;
    const int row = 8 * Tile::y() + i;
    if (Tile::x() == 0 && row < block.rows) p.lse[first + row] = softmax.rows[i].lse();
  }
  store_sums<D>(p.out.row(block.problem, block.first), sums, factor, block.rows, p.values, p.out.line);
}

template <int D>
void launch_flash_forward(const AttentionProblem<float>& p, Stream& stream) {
  const std::int64_t blocks = p.batch * ceil_div(p.rows, FloatTile<D>::kRows);
  const bool vectors = vector_ready(p.q) && vector_ready(p.k) && vector_ready(p.v);
  launch(flash_forward_float<D>,
         {.grid = static_cast<unsigned>(blocks), .block = 128, .shared = kFlashFloatShared<D>, .stream = stream}, p,
         vectors);
}

// ---- 16-bit floats

/// Rows g and g + 8 of each of a warp's M tiles; a row lies in 4 neighbouring lanes.
template <int M>
struct HalfSoftmax {
  RunningRow rows[M][2];

  /// Turns scores (rows from `row` on, columns from `column` on) into weights; sets the factors of earlier sums.
  template <int N>
  __device__ void advance(WarpTiles<M, N>& scores, float (&factors)[M][2], const AttentionSizes& sizes, float scale,
                          int row, int column) {
    if (column + 8 * N > sizes.visible(row)) hide(scores, sizes, row, column);
    LEVIN_PRAGMA_UNROLL
    for (int m = 0; m < M; ++m) {
      LEVIN_PRAGMA_UNROLL
      for (int half = 0; half < 2; ++half) {
        float top = -INFINITY;
        LEVIN_PRAGMA_UNROLL
        for (int n = 0; n < 2 * N; ++n) top = fmaxf(top, scores[m][n / 2][2 * half + n % 2]);
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
        factors[m][half] = rows[m][half].raise(top, scale);
        LEVIN_PRAGMA_UNROLL
        for (int n = 0; n < 2 * N; ++n) {
          float& score = scores[m][n / 2][2 * half + n % 2];
          score = rows[m][half].weight(score, scale);
        }
      }
    }
  }
  /// Multiplies the sums by the factors of advance().
  template <int S>
  __device__ static void rescale(WarpTiles<M, S>& sums, const float (&factors)[M][2]) {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < 2 * M; ++i) {
      const float factor = factors[i / 2][i % 2];
      if (!__any_sync(0xffffffffu, factor != 1.0f)) continue;  // the usual case after some tiles
      LEVIN_PRAGMA_UNROLL
      for (int n = 0; n < 2 * S; ++n) sums[i / 2][n / 2][2 * (i % 2) + n % 2] *= factor;
    }
  }
  __device__ void finish() {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < 2 * M; ++i) {
      float& sum = rows[i / 2][i % 2].sum;
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    }
  }

 private:
  /// Sets the scores of columns that their rows do not attend to.
  template <int N>
  __device__ static void hide(WarpTiles<M, N>& scores, const AttentionSizes& sizes, int row, int column) {
    const int g = ptx::lane_id() / 4, t = ptx::lane_id() % 4;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < 2 * M; ++i) {
      const int limit = sizes.visible(row + 8 * i + g) - column - 2 * t;
      LEVIN_PRAGMA_UNROLL
      for (int n = 0; n < 2 * N; ++n) {
        float& score = scores[i / 2][n / 2][2 * (i % 2) + n % 2];
        if (8 * (n / 2) + n % 2 >= limit) score = -INFINITY;
      }
    }
  }
};

/// M: tiles of 16 rows per warp, for four warps; KeyTile: rows of k and v per tile.
template <class T, int D, int M, int KeyTile>
__global__ void __launch_bounds__(128) flash_forward_half(AttentionProblem<T> p, bool vectors) {
  using Queries = HalfRows<T, 64 * M, D>;
  using Keys = HalfRows<T, KeyTile, D>;
  T* q = dynamic_shared<T>();     // (64 M, D)
  T* k = q + Queries::kElements;  // (KeyTile, D)
  T* v = k + Keys::kElements;     // (KeyTile, D)
  const FlashBlock block(p, 64 * M);
  const T *from_k = p.k.of(block.problem), *from_v = p.v.of(block.problem);
  const auto copy_k = [&](int j) {
    if (j < block.columns) Keys::copy(k, from_k + j * p.k.line, p.k.line, p.columns - j, p.width, vectors);
    ptx::cp_async_commit();
  };
  const auto copy_v = [&](int j) {
    if (j < block.columns) Keys::copy(v, from_v + j * p.v.line, p.v.line, p.columns - j, p.values, vectors);
    ptx::cp_async_commit();
  };
  Queries::copy(q, p.q.of(block.problem) + block.first * p.q.line, p.q.line, block.rows, p.width, vectors);
  copy_k(0);
  copy_v(0);
  const int row = ptx::warp_id() * 16 * M;  // the warp's first row in the block
  const int end = row < block.rows ? p.visible(block.first + row + 16 * M - 1) : 0;
  WarpTiles<M, D / 8> sums = {};
  HalfSoftmax<M> softmax;
  for (int j = 0; j < block.columns; j += KeyTile) {
    ptx::cp_async_wait<1>();
    __syncthreads();
    WarpTiles<M, KeyTile / 8> scores;
    clear(scores);
    if (j < end) {
      Keys::template dot<Queries>(scores, q, row, k, p.width);
      float factors[M][2];
      softmax.advance(scores, factors, p, p.scale * kLog2E, block.first + row, j);
      softmax.rescale(sums, factors);
    }
    ptx::cp_async_wait<0>();
    __syncthreads();  // v is written, k may be overwritten
    copy_k(j + KeyTile);
    if (j < end) Keys::add_product(sums, scores, v, p.values);
    __syncthreads();  // v may be overwritten
    copy_v(j + KeyTile);
  }
  ptx::cp_async_wait_all();
  softmax.finish();
  const std::int64_t first = block.problem * p.rows + block.first;
  float factor[M][2];
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < 2 * M; ++i) {
    factor[i / 2][i % 2] = 1.0f / softmax.rows[i / 2][i % 2].sum;
    const int r = row + 8 * i + ptx::lane_id() / 4;
    if (ptx::lane_id() % 4 == 0 && r < block.rows) p.lse[first + r] = softmax.rows[i / 2][i % 2].lse();
  }
  store_tiles(p.out.row(block.problem, block.first), sums, factor, row, block.rows, p.values, p.out.line);
}

template <int D, class T>
void launch_flash_forward(const AttentionProblem<T>& p, Stream& stream) {
  constexpr int kM = 2, kKeys = D > 64 ? 32 : 64;  // limited by the registers
  const std::int64_t blocks = p.batch * ceil_div(p.rows, 64 * kM);
  const bool vectors = vector_ready(p.q) && vector_ready(p.k) && vector_ready(p.v);
  launch(flash_forward_half<T, D, kM, kKeys>,
         {.grid = static_cast<unsigned>(blocks),
          .block = 128,
          .shared = sizeof(T) * D * (64 * kM + 2 * kKeys),
          .stream = stream},
         p, vectors);
}

// ---- both

inline bool is_narrow(const AttentionSizes& s) { return s.width <= 64 && s.values <= 64; }
/// True for heads of at most 128 and a positive scale, by which the largest score stays the largest.
inline bool flash_fits(const AttentionSizes& s, double scale) { return s.width <= 128 && s.values <= 128 && scale > 0; }

template <class T>
void run_attention_flash(const AttentionProblem<T>& p, Stream& stream) {
  if (is_narrow(p))
    launch_flash_forward<64>(p, stream);
  else
    launch_flash_forward<128>(p, stream);
}

}  // namespace levin::kernels::cuda
