#pragma once
// Rung 2: matrix products by tiles.
// Idea: the same steps as rung 1, but each matrix product goes through tiles in shared memory with 4 x 4 results per
// thread, and a warp computes the softmax of a row. Changes: a number is loaded once for 64 results, and tiles that a
// causal mask hides are skipped. Bound: float arithmetic, then the traffic of the scores to memory and back.

#include "kernels/cuda/attention/problem.cuh"
#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/base/warp.h"

#include <utility>

namespace levin::kernels::cuda {

/// The role of the scores (rows i, columns j) in a product, of which a causal mask leaves j <= i: result or factor.
enum class Mask { none, result, left, left_transposed };

/// c (count, m, n) = alpha a b. Operands with one number per score count their matrices from 0, the others from
/// `first`.
template <class A, class B, class Out>
struct TiledProduct {
  Operand<A> a;  ///< lines are rows
  Operand<B> b;  ///< lines are columns
  Result<Out> c;
  int m, n, k;
  std::int64_t a_first, b_first, c_first;
  ComputeType<B> alpha;
  Mask mask;
};

inline constexpr int kTileEdge = 64, kTileDepth = 16, kTileThreads = 256;

/// tile (16, 64) = elements [step, step + 16) of lines [line, line + 64); zeros outside of the operand.
template <class T, class C>
__device__ void load_tile(C (&tile)[kTileDepth][kTileEdge + 1], const T* x, const Operand<T>& strides, int line,
                          int lines, int step, int steps) {
  for (int t = static_cast<int>(threadIdx.x); t < kTileEdge * kTileDepth; t += kTileThreads) {
    const bool along_steps = strides.step == 1;
    const int l = along_steps ? t / kTileDepth : t % kTileEdge, s = along_steps ? t % kTileDepth : t / kTileEdge;
    const bool inside = line + l < lines && step + s < steps;
    tile[s][l] = inside ? convert<C>(x[(line + l) * strides.line + (step + s) * strides.step]) : C(0);
  }
}

/// One block per tile of 64 x 64; thread (y, x) of 16 x 16 owns rows y + 16 i and columns x + 16 j.
template <class A, class B, class Out>
__global__ void __launch_bounds__(kTileThreads) tiled_product(TiledProduct<A, B, Out> p) {
  using C = ComputeType<B>;
  LEVIN_SHARED(C, a, kTileDepth, kTileEdge + 1);
  LEVIN_SHARED(C, b, kTileDepth, kTileEdge + 1);
  const std::int64_t across = ceil_div(p.n, kTileEdge), tile = blockIdx.x / across, down = ceil_div(p.m, kTileEdge);
  const int column = static_cast<int>(blockIdx.x % across) * kTileEdge, row = static_cast<int>(tile % down) * kTileEdge;
  const std::int64_t matrix = tile / down;
  const int y = static_cast<int>(threadIdx.x) / 16, x = static_cast<int>(threadIdx.x) % 16;
  int begin = 0, end = p.k;
  if (p.mask == Mask::result && column >= row + kTileEdge) end = 0;
  if (p.mask == Mask::left && row + kTileEdge < end) end = row + kTileEdge;
  if (p.mask == Mask::left_transposed) begin = row;
  const A* from_a = p.a.of(p.a_first + matrix);
  const B* from_b = p.b.of(p.b_first + matrix);
  C sums[4][4] = {};
  for (int step = begin; step < end; step += kTileDepth) {
    load_tile(a, from_a, p.a, row, p.m, step, p.k);
    load_tile(b, from_b, p.b, column, p.n, step, p.k);
    __syncthreads();
    const int steps = end - step < kTileDepth ? end - step : kTileDepth;
    for (int s = 0; s < steps; ++s) {
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < 4; ++i) {
        LEVIN_PRAGMA_UNROLL
        for (int j = 0; j < 4; ++j) sums[i][j] += a[s][y + 16 * i] * b[s][x + 16 * j];
      }
    }
    __syncthreads();
  }
  Out* to = p.c.row(p.c_first + matrix, row);
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < 4; ++i) {
    LEVIN_PRAGMA_UNROLL
    for (int j = 0; j < 4; ++j) {
      const int r = y + 16 * i, c = column + x + 16 * j;
      if (row + r < p.m && c < p.n) to[r * p.c.line + c] = convert<Out>(p.alpha * sums[i][j]);
    }
  }
}

template <class A, class B, class Out>
void launch_product(const TiledProduct<A, B, Out>& p, std::int64_t count, Stream& stream) {
  const std::int64_t tiles = count * ceil_div(p.m, kTileEdge) * ceil_div(p.n, kTileEdge);
  launch(tiled_product<A, B, Out>, {.grid = static_cast<unsigned>(tiles), .block = kTileThreads, .stream = stream}, p);
}

/// Returns a matrix (columns, rows) as its transpose.
template <class T>
Operand<T> transposed(Operand<T> x) {
  std::swap(x.line, x.step);
  return x;
}

/// scores (count, L, S) = alpha a b^T, a (L, depth) and b (S, depth).
template <class T, class C>
void score_product(const AttentionSizes& s, Operand<T> a, Operand<T> b, C* scores, int depth, C alpha,
                   std::int64_t first, std::int64_t count, Stream& stream) {
  launch_product(TiledProduct<T, T, C>{a, b, dense_rows(scores, s.rows, s.columns), s.rows, s.columns, depth, first,
                                       first, 0, alpha, s.causal ? Mask::result : Mask::none},
                 count, stream);
}

/// out (count, L, n) = alpha weights x, x (S, n).
template <class T, class C>
void row_product(const AttentionSizes& s, C* weights, Operand<T> x, Result<T> out, int n, C alpha, std::int64_t first,
                 std::int64_t count, Stream& stream) {
  launch_product(TiledProduct<C, T, T>{as_operand(dense_rows(weights, s.rows, s.columns)), transposed(x), out, s.rows,
                                       n, s.columns, 0, first, first, alpha, s.causal ? Mask::left : Mask::none},
                 count, stream);
}

/// out (count, S, n) = alpha weights^T x, x (L, n).
template <class T, class C>
void column_product(const AttentionSizes& s, C* weights, Operand<T> x, Result<T> out, int n, C alpha,
                    std::int64_t first, std::int64_t count, Stream& stream) {
  launch_product(TiledProduct<C, T, T>{transposed(as_operand(dense_rows(weights, s.rows, s.columns))), transposed(x),
                                       out, s.columns, n, s.rows, 0, first, first, alpha,
                                       s.causal ? Mask::left_transposed : Mask::none},
                 count, stream);
}

/// Turns scores into weights, 0 where masked; one warp per row.
template <class T, class C = ComputeType<T>>
__global__ void tiled_softmax(AttentionProblem<T> p, C* scores, std::int64_t first, std::int64_t rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (std::int64_t r = global_thread() / 32; r < rows; r += grid_threads() / 32) {
    const int n = p.visible(static_cast<int>(r % p.rows));
    C* row = scores + r * p.columns;
    const auto mask = p.mask.of(first + r / p.rows, static_cast<int>(r % p.rows), first * p.rows + r);
    C peak = -INFINITY, sum = 0;
    int attends = 0;
    for (int j = lane; j < n; j += 32) {
      row[j] = mask.shown(row[j], j);
      peak = Maximum{}(peak, row[j]);
      if (!mask.hides(j)) attends = 1;
    }
    peak = warp_reduce(peak, Maximum{});
    attends = warp_reduce(attends, Maximum{});
    for (int j = lane; j < n; j += 32) {
      row[j] = attends ? exponential(row[j] - peak) : C(0);
      sum += row[j];
    }
    sum = warp_reduce(sum, Plus{});
    for (int j = lane; j < p.columns; j += 32) row[j] = j < n && attends ? mask.kept(row[j] / sum, j) : C(0);
    if (lane == 0) p.lse[first * p.rows + r] = attends ? peak + logarithm(sum) : C(INFINITY);
  }
}

template <class T>
void run_attention_tiled(const AttentionProblem<T>& p, Stream& stream) {
  using C = ComputeType<T>;
  for_score_chunks(p, [&](std::int64_t first, std::int64_t count) {
    const std::int64_t rows = count * p.rows;
    Scratch<C> scores(stream, rows * p.columns);
    score_product(p, p.q, p.k, scores.get(), p.width, p.scale, first, count, stream);
    launch(tiled_softmax<T>, {.grid = blocks_for(rows, 4), .block = 128, .stream = stream}, p, scores.get(), first,
           rows);
    row_product(p, scores.get(), p.v, p.out, p.values, C(1), first, count, stream);
  });
}

/// Turns scores into P and dP into dS, 0 where masked; one warp per row.
template <class T, class C = ComputeType<T>>
__global__ void tiled_differentiate(AttentionGradients<T> p, C* scores, C* dp, std::int64_t first, std::int64_t rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (std::int64_t r = global_thread() / 32; r < rows; r += grid_threads() / 32) {
    const int n = p.visible(static_cast<int>(r % p.rows));
    const std::int64_t row = first * p.rows + r, problem = first + r / p.rows;
    const T *g = p.g.of(problem) + r % p.rows * p.g.line, *out = p.out.of(problem) + r % p.rows * p.out.line;
    C delta = 0;
    for (int e = lane; e < p.values; e += 32) delta += convert<C>(g[e]) * convert<C>(out[e]);
    delta = warp_reduce(delta, Plus{});
    const C lse = p.lse[row];
    const auto mask = p.mask.of(problem, static_cast<int>(r % p.rows), row);
    for (int j = lane; j < p.columns; j += 32) {
      const std::int64_t at = r * p.columns + j;
      const C weight = j < n ? exponential(mask.shown(scores[at], j) - lse) : C(0);
      scores[at] = j < n ? mask.kept(weight, j) : C(0);
      dp[at] = j < n ? weight * (mask.kept(dp[at], j) - delta) : C(0);
    }
  }
}

template <class T>
void run_attention_backward_tiled(const AttentionGradients<T>& p, Stream& stream) {
  using C = ComputeType<T>;
  for_score_chunks(p, [&](std::int64_t first, std::int64_t count) {
    const std::int64_t rows = count * p.rows;
    Scratch<C> scores(stream, rows * p.columns), ds(stream, rows * p.columns);
    score_product(p, p.q, p.k, scores.get(), p.width, p.scale, first, count, stream);
    score_product(p, p.g, p.v, ds.get(), p.values, C(1), first, count, stream);
    launch(tiled_differentiate<T>, {.grid = blocks_for(rows, 4), .block = 128, .stream = stream}, p, scores.get(),
           ds.get(), first, rows);
    row_product(p, ds.get(), p.k, p.dq, p.width, p.scale, first, count, stream);
    column_product(p, ds.get(), p.q, p.dk, p.width, p.scale, first, count, stream);
    column_product(p, scores.get(), p.g, p.dv, p.values, C(1), first, count, stream);
  });
}

}  // namespace levin::kernels::cuda
