#pragma once
// Rung 4: FlashAttention, backward.
// Idea: scores are recomputed instead of stored; P = exp(score - lse) needs no running maximum. Changes against rung 2
// for the backward: no scratch except one number per row, delta = sum of g out. There are two kernels: a block that
// owns rows of k and v loops over all of q and accumulates dk and dv, one that owns rows of q accumulates dq. The
// scores are computed twice, but every sum has one owner and so a fixed order, which atomic sums of dq would not have.
// Bound: the products, seven instead of five.

#include "kernels/cuda/attention/03_flash_forward.cuh"
#include "kernels/cuda/base/scratch.h"

namespace levin::kernels::cuda {

/// delta (batch, L) = sum of g out along a row; one warp per row. `vectors`: g and out are vector_ready.
template <class T>
__global__ void flash_delta(AttentionGradients<T> p, float* delta, bool vectors) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t rows = p.batch * p.rows;
  for (std::int64_t r = global_thread() / 32; r < rows; r += grid_threads() / 32) {
    const std::int64_t problem = r / p.rows, row = r % p.rows;
    const T *g = p.g.of(problem) + row * p.g.line, *out = p.out.of(problem) + row * p.out.line;
    const int packed = vectors ? p.values / 8 * 8 : 0;
    float sum = 0;
    for (int e = 8 * lane; e < packed; e += 256) {
      const auto a = pack_at<8>(g + e), b = pack_at<8>(out + e);
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < 8; ++i) sum += convert<float>(a[i]) * convert<float>(b[i]);
    }
    for (int e = packed + lane; e < p.values; e += 32) sum += convert<float>(g[e]) * convert<float>(out[e]);
    sum = warp_reduce(sum, Plus{});
    if (lane == 0) delta[r] = sum;
  }
}

/// Per-row values of q that both kernels use.
struct RowConstants {
  float lse2, delta;  ///< lse in powers of 2, and delta
};
__device__ inline RowConstants row_constants(const float* lse, const float* delta, std::int64_t row, bool exists) {
  if (!exists) return {0, 0};
  return {lse[row] * kLog2E, delta[row]};
}

/// Returns the first row of a block that owns columns, rounded down to a multiple of `tile`.
__device__ inline int first_row(const AttentionSizes& s, int column, int tile) {
  return s.causal ? column / tile * tile : 0;
}

// ---- float32

/// Turns scores into P and dp into dS, both 0 where masked or out of range. Row 8 y + i of the tile is row `row` + 8 y
/// + i.
__device__ inline void differentiate(FloatScores::Scores& scores, FloatScores::Scores& dp,
                                     const AttentionGradients<float>& p, const float* delta, std::int64_t problem,
                                     int row, int column) {
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < 8; ++i) {
    const int r = row + 8 * FloatScores::y() + i;
    const RowConstants c = row_constants(p.lse, delta, problem * p.rows + r, r < p.rows);
    const int limit = r < p.rows ? p.visible(r) - column : 0;
    LEVIN_PRAGMA_UNROLL
    for (int j = 0; j < 4; ++j) {
      const bool inside = FloatScores::x() + 16 * j < limit;
      scores[i][j] = inside ? exp2f(scores[i][j] * (p.scale * kLog2E) - c.lse2) : 0.0f;
      dp[i][j] = inside ? scores[i][j] * (dp[i][j] - c.delta) : 0.0f;
    }
  }
}

template <int D>
inline constexpr std::size_t kFlashBackwardFloatShared = sizeof(float) *
                                                         (4 * FloatTile<D>::kElements + FloatScores::kElements);

/// Computes dk and dv of 64 columns.
template <int D>
__global__ void __launch_bounds__(128)
    flash_keys_float(AttentionGradients<float> p, const float* delta, bool vectors, bool g_vectors) {
  using Tile = FloatTile<D>;
  float* k = dynamic_shared<float>();    // (64, D)
  float* v = k + Tile::kElements;        // (64, D)
  float* q = v + Tile::kElements;        // (64, D)
  float* g = q + Tile::kElements;        // (64, D)
  float* weights = g + Tile::kElements;  // (64, 64): P, then dS; rows of q
  const auto blocks = static_cast<unsigned>(ceil_div(p.columns, Tile::kRows));
  const std::int64_t problem = blockIdx.x / blocks;
  const int column = static_cast<int>(blockIdx.x % blocks) * Tile::kRows;
  const float *from_q = p.q.of(problem), *from_g = p.g.of(problem);
  const float *from_k = p.k.of(problem) + column * p.k.line, *from_v = p.v.of(problem) + column * p.v.line;
  Tile::copy(k, from_k, p.k.line, p.columns - column, p.width, vectors);
  Tile::copy(v, from_v, p.v.line, p.columns - column, p.values, vectors);
  typename Tile::Sums dk = {}, dv = {};
  for (int row = first_row(p, column, Tile::kRows); row < p.rows; row += Tile::kRows) {
    Tile::copy(q, from_q + row * p.q.line, p.q.line, p.rows - row, p.width, vectors);
    Tile::copy(g, from_g + row * p.g.line, p.g.line, p.rows - row, p.values, g_vectors);
    ptx::cp_async_wait_all();
    __syncthreads();
    FloatScores::Scores scores, dp;
    Tile::dot(scores, q, k, p.width);
    Tile::dot(dp, g, v, p.values);
    differentiate(scores, dp, p, delta, problem, row, column);
    const int rows = p.rows - row < Tile::kRows ? p.rows - row : Tile::kRows;
    store_scores(weights, scores);
    __syncthreads();
    add_transposed_product<D>(dv, weights, g, rows);
    __syncthreads();
    store_scores(weights, dp);
    __syncthreads();
    add_transposed_product<D>(dk, weights, q, rows);
    __syncthreads();  // q, g and the weights may be overwritten
  }
  ptx::cp_async_wait_all();
  float one[8], scale[8];
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < 8; ++i) one[i] = 1, scale[i] = p.scale;
  store_sums<D>(p.dk.row(problem, column), dk, scale, p.columns - column, p.width, p.dk.line);
  store_sums<D>(p.dv.row(problem, column), dv, one, p.columns - column, p.values, p.dv.line);
}

/// Computes dq of 64 rows.
template <int D>
__global__ void __launch_bounds__(128)
    flash_queries_float(AttentionGradients<float> p, const float* delta, bool vectors, bool g_vectors) {
  using Tile = FloatTile<D>;
  float* k = dynamic_shared<float>();  // (64, D)
  float* v = k + Tile::kElements;      // (64, D)
  float* q = v + Tile::kElements;      // (64, D)
  float* g = q + Tile::kElements;      // (64, D)
  float* ds = g + Tile::kElements;     // (64, 64)
  const FlashBlock block(p, Tile::kRows);
  const float *from_k = p.k.of(block.problem), *from_v = p.v.of(block.problem);
  Tile::copy(q, p.q.of(block.problem) + block.first * p.q.line, p.q.line, block.rows, p.width, vectors);
  Tile::copy(g, p.g.of(block.problem) + block.first * p.g.line, p.g.line, block.rows, p.values, g_vectors);
  typename Tile::Sums dq = {};
  for (int column = 0; column < block.columns; column += kKeyTile) {
    Tile::copy(k, from_k + column * p.k.line, p.k.line, p.columns - column, p.width, vectors);
    Tile::copy(v, from_v + column * p.v.line, p.v.line, p.columns - column, p.values, vectors);
    ptx::cp_async_wait_all();
    __syncthreads();
    FloatScores::Scores scores, dp;
    Tile::dot(scores, q, k, p.width);
    Tile::dot(dp, g, v, p.values);
    differentiate(scores, dp, p, delta, block.problem, block.first, column);
    store_scores(ds, dp);
    __syncthreads();
    const int left = block.columns - column;
    add_product<D>(dq, ds, k, left < kKeyTile ? left : kKeyTile);
    __syncthreads();  // k and v may be overwritten
  }
  float scale[8];
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < 8; ++i) scale[i] = p.scale;
  store_sums<D>(p.dq.row(block.problem, block.first), dq, scale, block.rows, p.width, p.dq.line);
}

template <int D>
void launch_flash_backward(const AttentionGradients<float>& p, const float* delta, Stream& stream) {
  const bool vectors = vector_ready(p.q) && vector_ready(p.k) && vector_ready(p.v);
  const bool g_vectors = vector_ready(p.g);
  const std::int64_t keys = p.batch * ceil_div(p.columns, 64), queries = p.batch * ceil_div(p.rows, 64);
  launch(flash_keys_float<D>,
         {.grid = static_cast<unsigned>(keys), .block = 128, .shared = kFlashBackwardFloatShared<D>, .stream = stream},
         p, delta, vectors, g_vectors);
  launch(
      flash_queries_float<D>,
      {.grid = static_cast<unsigned>(queries), .block = 128, .shared = kFlashBackwardFloatShared<D>, .stream = stream},
      p, delta, vectors, g_vectors);
}

// ---- 16-bit floats

/// Tiles of q and g in flight, or of k and v; two buffers each.
template <class T, int Rows, int D>
struct FlashStage {
  using Tile = HalfRows<T, Rows, D>;
  T *a, *b;
  __device__ FlashStage(T* memory, int number) : a(memory + number % 2 * 2 * Tile::kElements), b(a + Tile::kElements) {}
};

/// Computes dk and dv of 64 columns, 16 per warp, with Rows rows of q per step. The scores are transposed: rows of k
/// run down.
template <class T, int D, int Rows>
__global__ void __launch_bounds__(128)
    flash_keys_half(AttentionGradients<T> p, const float* delta, bool vectors, bool g_vectors) {
  using Keys = HalfRows<T, 64, D>;
  using Queries = HalfRows<T, Rows, D>;
  LEVIN_SHARED(RowConstants, constants, Rows);
  T* k = dynamic_shared<T>();     // (64, D)
  T* v = k + Keys::kElements;     // (64, D)
  T* ring = v + Keys::kElements;  // (stage, q then g, Rows, D)
  const auto blocks = static_cast<unsigned>(ceil_div(p.columns, Keys::kRows));
  const std::int64_t problem = blockIdx.x / blocks;
  const int column = static_cast<int>(blockIdx.x % blocks) * Keys::kRows;
  const T *from_q = p.q.of(problem), *from_g = p.g.of(problem);
  const T *from_k = p.k.of(problem) + column * p.k.line, *from_v = p.v.of(problem) + column * p.v.line;
  const int begin = first_row(p, column, Rows);
  const auto fetch = [&](int row) {
    const FlashStage<T, Rows, D> stage(ring, row / Rows);
    if (row < p.rows) {
      Queries::copy(stage.a, from_q + row * p.q.line, p.q.line, p.rows - row, p.width, vectors);
      Queries::copy(stage.b, from_g + row * p.g.line, p.g.line, p.rows - row, p.values, g_vectors);
    }
    ptx::cp_async_commit();
  };
  Keys::copy(k, from_k, p.k.line, p.columns - column, p.width, vectors);
  Keys::copy(v, from_v, p.v.line, p.columns - column, p.values, vectors);
  fetch(begin);
  const int own = ptx::warp_id() * 16, g = ptx::lane_id() / 4, t = ptx::lane_id() % 4;
  WarpTiles<1, D / 8> dk = {}, dv = {};
  for (int row = begin; row < p.rows; row += Rows) {
    const FlashStage<T, Rows, D> stage(ring, row / Rows);
    const auto thread = static_cast<int>(threadIdx.x);
    if (thread < Rows) {
      constants[thread] = row_constants(p.lse, delta, problem * p.rows + row + thread, row + thread < p.rows);
    }
    fetch(row + Rows);
    ptx::cp_async_wait<1>();
    __syncthreads();
    WarpTiles<1, Rows / 8> weights, ds;
    clear(weights);
    clear(ds);
    Queries::template dot<Keys>(weights, k, own, stage.a, p.width);
    Queries::template dot<Keys>(ds, v, own, stage.b, p.values);
    LEVIN_PRAGMA_UNROLL
    for (int n = 0; n < Rows / 8; ++n) {
      LEVIN_PRAGMA_UNROLL
      for (int c = 0; c < 4; ++c) {
        const int r = 8 * n + 2 * t + c % 2, j = column + own + g + 8 * (c / 2);
        const bool inside = row + r < p.rows && j < p.visible(row + r);
        float& weight = weights[0][n][c];
        weight = inside ? exp2f(weight * (p.scale * kLog2E) - constants[r].lse2) : 0.0f;
        ds[0][n][c] = inside ? weight * (ds[0][n][c] - constants[r].delta) : 0.0f;
      }
    }
    Queries::add_product(dv, weights, stage.b, p.values);
    Queries::add_product(dk, ds, stage.a, p.width);
    __syncthreads();  // the stage and the constants may be overwritten
  }
  ptx::cp_async_wait_all();
  const float one[1][2] = {{1, 1}}, scale[1][2] = {{p.scale, p.scale}};
  store_tiles(p.dk.row(problem, column), dk, scale, own, p.columns - column, p.width, p.dk.line);
  store_tiles(p.dv.row(problem, column), dv, one, own, p.columns - column, p.values, p.dv.line);
}

/// Computes dq of 64 rows, 16 per warp, with Columns rows of k and v per step.
template <class T, int D, int Columns>
__global__ void __launch_bounds__(128)
    flash_queries_half(AttentionGradients<T> p, const float* delta, bool vectors, bool g_vectors) {
  using Queries = HalfRows<T, 64, D>;
  using Keys = HalfRows<T, Columns, D>;
  T* q = dynamic_shared<T>();           // (64, D)
  T* dout = q + Queries::kElements;     // (64, D), the tile of g
  T* ring = dout + Queries::kElements;  // (stage, k then v, Columns, D)
  const FlashBlock block(p, Queries::kRows);
  const std::int64_t first = block.problem * p.rows + block.first;
  const T *from_k = p.k.of(block.problem), *from_v = p.v.of(block.problem);
  const auto fetch = [&](int column) {
    const FlashStage<T, Columns, D> stage(ring, column / Columns);
    if (column < block.columns) {
      Keys::copy(stage.a, from_k + column * p.k.line, p.k.line, p.columns - column, p.width, vectors);
      Keys::copy(stage.b, from_v + column * p.v.line, p.v.line, p.columns - column, p.values, vectors);
    }
    ptx::cp_async_commit();
  };
  Queries::copy(q, p.q.of(block.problem) + block.first * p.q.line, p.q.line, block.rows, p.width, vectors);
  Queries::copy(dout, p.g.of(block.problem) + block.first * p.g.line, p.g.line, block.rows, p.values, g_vectors);
  fetch(0);
  const int own = ptx::warp_id() * 16, g = ptx::lane_id() / 4, t = ptx::lane_id() % 4;
  RowConstants constants[2];
  int visible[2];
  LEVIN_PRAGMA_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int r = own + g + 8 * half;
    constants[half] = row_constants(p.lse, delta, first + r, r < block.rows);
    visible[half] = r < block.rows ? p.visible(block.first + r) : 0;
  }
  WarpTiles<1, D / 8> dq = {};
  for (int column = 0; column < block.columns; column += Columns) {
    const FlashStage<T, Columns, D> stage(ring, column / Columns);
    fetch(column + Columns);
    ptx::cp_async_wait<1>();
    __syncthreads();
    WarpTiles<1, Columns / 8> weights, ds;
    clear(weights);
    clear(ds);
    Keys::template dot<Queries>(weights, q, own, stage.a, p.width);
    Keys::template dot<Queries>(ds, dout, own, stage.b, p.values);
    LEVIN_PRAGMA_UNROLL
    for (int n = 0; n < Columns / 8; ++n) {
      LEVIN_PRAGMA_UNROLL
      for (int c = 0; c < 4; ++c) {
        const int half = c / 2;
        const bool inside = column + 8 * n + 2 * t + c % 2 < visible[half];
        const float weight = exp2f(weights[0][n][c] * (p.scale * kLog2E) - constants[half].lse2);
        ds[0][n][c] = inside ? weight * (ds[0][n][c] - constants[half].delta) : 0.0f;
      }
    }
    Keys::add_product(dq, ds, stage.a, p.width);
    __syncthreads();  // the stage may be overwritten
  }
  ptx::cp_async_wait_all();
  const float scale[1][2] = {{p.scale, p.scale}};
  store_tiles(p.dq.row(block.problem, block.first), dq, scale, own, block.rows, p.width, p.dq.line);
}

template <int D, class T>
void launch_flash_backward(const AttentionGradients<T>& p, const float* delta, Stream& stream) {
  constexpr int kPassing = D > 64 ? 32 : 64;  // limited by the registers
  constexpr std::size_t shared = sizeof(T) * D * (2 * 64 + 4 * kPassing);
  const bool vectors = vector_ready(p.q) && vector_ready(p.k) && vector_ready(p.v);
  const bool g_vectors = vector_ready(p.g);
  const std::int64_t keys = p.batch * ceil_div(p.columns, 64), queries = p.batch * ceil_div(p.rows, 64);
  launch(flash_keys_half<T, D, kPassing>,
         {.grid = static_cast<unsigned>(keys), .block = 128, .shared = shared, .stream = stream}, p, delta, vectors,
         g_vectors);
  launch(flash_queries_half<T, D, kPassing>,
         {.grid = static_cast<unsigned>(queries), .block = 128, .shared = shared, .stream = stream}, p, delta, vectors,
         g_vectors);
}

// ---- both

/// Returns delta (batch, L), which a kernel on the stream computes.
template <class T>
Scratch<float> flash_deltas(const AttentionGradients<T>& p, Stream& stream) {
  const std::int64_t rows = p.batch * p.rows;
  Scratch<float> delta(stream, rows);
  const bool vectors = sizeof(T) == 2 && vector_ready(p.g) && vector_ready(p.out);
  launch(flash_delta<T>, {.grid = blocks_for(rows, 4), .block = 128, .stream = stream}, p, delta.get(), vectors);
  return delta;
}

template <class T>
void run_attention_backward_flash(const AttentionGradients<T>& p, Stream& stream) {
  const Scratch<float> delta = flash_deltas(p, stream);
  if (is_narrow(p))
    launch_flash_backward<64>(p, delta.get(), stream);
  else
    launch_flash_backward<128>(p, delta.get(), stream);
}

}  // namespace levin::kernels::cuda
