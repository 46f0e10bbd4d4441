#pragma once
// Rung 1: the formulas, one thread per result.
// Idea: all scores are written to memory, then the softmax of each row is computed, then each element of the result as
// a sum over a row of them; the backward likewise. Changes: nothing below it. Bound: every product loads both of its
// numbers, and the (L, S) scores go to memory and back several times.

#include "kernels/cuda/attention/problem.cuh"
#include "kernels/cuda/base/scratch.h"

namespace levin::kernels::cuda {

/// Coordinates of element t of (count, rows, columns), whose first axis begins at `first`.
struct ScorePlace {
  __device__ ScorePlace(std::int64_t t, int rows, int columns, std::int64_t first)
      : column(static_cast<int>(t % columns)), row(static_cast<int>(t / columns % rows)), batch(t / columns / rows) {
    problem = first + batch;
  }
  int column, row;
  std::int64_t batch, problem;  ///< index in the scratch's matrices, and among all
};

template <class T, class C = ComputeType<T>>
__device__ C dot_rows(const T* a, const T* b, int n) {
  C sum = 0;
  for (int e = 0; e < n; ++e) sum += convert<C>(a[e]) * convert<C>(b[e]);
  return sum;
}

/// scores (count, L, S) = scale q k^T; masked scores are not written.
template <class T, class C = ComputeType<T>>
__global__ void naive_scores(AttentionProblem<T> p, C* scores, std::int64_t first, std::int64_t count) {
  for (std::int64_t t = global_thread(); t < count; t += grid_threads()) {
    const ScorePlace at(t, p.rows, p.columns, first);
    if (at.column >= p.visible(at.row)) continue;
    scores[t] =
        p.scale * dot_rows(p.q.of(at.problem) + at.row * p.q.line, p.k.of(at.problem) + at.column * p.k.line, p.width);
  }
}

/// Turns scores into probabilities, one thread per row.
template <class T, class C = ComputeType<T>>
__global__ void naive_softmax(AttentionProblem<T> p, C* scores, std::int64_t first, std::int64_t rows) {
  for (std::int64_t t = global_thread(); t < rows; t += grid_threads()) {
    const int n = p.visible(static_cast<int>(t % p.rows));
    C* row = scores + t * p.columns;
    C peak = row[0], sum = 0;
    for (int j = 1; j < n; ++j) peak = row[j] > peak || row[j] != row[j] ? row[j] : peak;
    for (int j = 0; j < n; ++j) {
      row[j] = exponential(row[j] - peak);
      sum += row[j];
    }
    for (int j = 0; j < n; ++j) row[j] /= sum;
    p.lse[first * p.rows + t] = peak + logarithm(sum);
  }
}

/// out = probabilities v
template <class T, class C = ComputeType<T>>
__global__ void naive_values(AttentionProblem<T> p, const C* weights, std::int64_t first, std::int64_t count) {
  for (std::int64_t t = global_thread(); t < count; t += grid_threads()) {
    const ScorePlace at(t, p.rows, p.values, first);
    const C* row = weights + (at.batch * p.rows + at.row) * p.columns;
    const T* v = p.v.of(at.problem) + at.column;
    C sum = 0;
    for (int j = 0; j < p.visible(at.row); ++j) sum += row[j] * convert<C>(v[j * p.v.line]);
    p.out.row(at.problem, at.row)[at.column] = convert<T>(sum);
  }
}

template <class T>
void run_attention_naive(const AttentionProblem<T>& p, Stream& stream) {
  for_score_chunks(p, [&](std::int64_t first, std::int64_t count) {
    const std::int64_t rows = count * p.rows;
    Scratch<ComputeType<T>> scores(stream, rows * p.columns);
    launch(naive_scores<T>, {.grid = blocks_for(rows * p.columns), .block = 256, .stream = stream}, p, scores.get(),
           first, rows * p.columns);
    launch(naive_softmax<T>, {.grid = blocks_for(rows), .block = 256, .stream = stream}, p, scores.get(), first, rows);
    if (p.values == 0) return;
    launch(naive_values<T>, {.grid = blocks_for(rows * p.values), .block = 256, .stream = stream}, p, scores.get(),
           first, rows * p.values);
  });
}

/// Computes P and dS (count, L, S); masked elements are not written.
template <class T, class C = ComputeType<T>>
__global__ void naive_differentiate(AttentionGradients<T> p, C* weights, C* ds, std::int64_t first,
                                    std::int64_t count) {
  for (std::int64_t t = global_thread(); t < count; t += grid_threads()) {
    const ScorePlace at(t, p.rows, p.columns, first);
    if (at.column >= p.visible(at.row)) continue;
    const std::int64_t row = at.problem * p.rows + at.row;
    const T *g = p.g.of(at.problem) + at.row * p.g.line, *v = p.v.of(at.problem) + at.column * p.v.line;
    const T* out = p.out.of(at.problem) + at.row * p.out.line;
    const C score =
        p.scale * dot_rows(p.q.of(at.problem) + at.row * p.q.line, p.k.of(at.problem) + at.column * p.k.line, p.width);
    weights[t] = exponential(score - p.lse[row]);
    ds[t] = weights[t] * (dot_rows(g, v, p.values) - dot_rows(g, out, p.values));
  }
}

/// dq = scale dS k
template <class T, class C = ComputeType<T>>
__global__ void naive_dq(AttentionGradients<T> p, const C* ds, std::int64_t first, std::int64_t count) {
  for (std::int64_t t = global_thread(); t < count; t += grid_threads()) {
    const ScorePlace at(t, p.rows, p.width, first);
    const C* row = ds + (at.batch * p.rows + at.row) * p.columns;
    const T* k = p.k.of(at.problem) + at.column;
    C sum = 0;
    for (int j = 0; j < p.visible(at.row); ++j) sum += row[j] * convert<C>(k[j * p.k.line]);
    p.dq.row(at.problem, at.row)[at.column] = convert<T>(p.scale * sum);
  }
}

/// out (count, S, width) = scale weights^T x, where x is the rows (L, width) of q or g.
template <class T, class C = ComputeType<T>>
__global__ void naive_transposed(AttentionGradients<T> p, const C* weights, Operand<T> x, Result<T> out, int width,
                                 C scale, std::int64_t first, std::int64_t count) {
  for (std::int64_t t = global_thread(); t < count; t += grid_threads()) {
    const ScorePlace at(t, p.columns, width, first);
    const C* column = weights + at.batch * p.rows * p.columns + at.row;
    const T* from = x.of(at.problem) + at.column;
    C sum = 0;
    for (int i = p.causal ? at.row : 0; i < p.rows; ++i)
      sum += column[static_cast<std::int64_t>(i) * p.columns] * convert<C>(from[i * x.line]);
    out.row(at.problem, at.row)[at.column] = convert<T>(scale * sum);
  }
}

template <class T>
void run_attention_backward_naive(const AttentionGradients<T>& p, Stream& stream) {
  using C = ComputeType<T>;
  for_score_chunks(p, [&](std::int64_t first, std::int64_t count) {
    const std::int64_t scores = count * p.rows * p.columns;
    Scratch<C> weights(stream, scores), ds(stream, scores);
    launch(naive_differentiate<T>, {.grid = blocks_for(scores), .block = 256, .stream = stream}, p, weights.get(),
           ds.get(), first, scores);
    const std::int64_t dq = count * p.rows * p.width;
    const std::int64_t dk = count * p.columns * p.width, dv = count * p.columns * p.values;
    if (dq > 0) {
      launch(naive_dq<T>, {.grid = blocks_for(dq), .block = 256, .stream = stream}, p, ds.get(), first, dq);
      launch(naive_transposed<T>, {.grid = blocks_for(dk), .block = 256, .stream = stream}, p, ds.get(), p.q, p.dk,
             p.width, p.scale, first, dk);
    }
    if (dv > 0) {
      launch(naive_transposed<T>, {.grid = blocks_for(dv), .block = 256, .stream = stream}, p, weights.get(), p.g,
             p.dv, p.values, C(1), first, dv);
    }
  });
}

}  // namespace levin::kernels::cuda
