#pragma once
// Attention as its kernels see it: matrices q (L, E), k (S, E), v (S, Ev), the result (L, Ev) and all gradients, with
// any row strides, one for each index of the leading axes; L = rows, S = columns, E = width, Ev = values.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/matmul/problem.cuh"
#include "kernels/cuda/random/words.cuh"

#include <levin/kernels/attention.h>
#include <levin/kernels/random.h>

namespace levin::kernels::cuda {

struct AttentionSizes {
  std::int64_t batch = 1;
  int rows = 0, columns = 0, width = 0, values = 0;
  bool causal = false;

  /// Returns the number of columns that a row attends to, from 0 on; in a block it is largest for the last row.
  __device__ int visible(int row) const { return causal && row + 1 < columns ? row + 1 : columns; }
  bool empty() const { return batch == 0 || rows == 0; }
};

/// AttentionMask on the device; C is the type of the scores.
template <class C>
struct ScoreMask {
  Operand<bool> choice;
  Operand<C> added;
  PhiloxState random;
  std::int64_t random_blocks = 0;  ///< of a row
  std::uint32_t limit = 0;         ///< 0: no dropout
  C factor = 1;                    ///< of the weights that stay

  /// The mask of one row of scores.
  struct Row {
    const bool* choice;
    const C* added;
    std::int64_t step;
    GeneratorState random;
    std::uint32_t limit;
    C factor;

    __device__ bool hides(int j) const {
      if (choice) return !choice[j * step];
      return added && added[j * step] == C(-INFINITY);
    }
    __device__ C shown(C score, int j) const {
      if (hides(j)) return C(-INFINITY);
      return added ? score + added[j * step] : score;
    }
    /// Returns a weight, or its gradient, after dropout.
    __device__ C kept(C x, int j) const {
      if (limit == 0) return x;
      return (random::draw(random, j / 4)[j % 4] >> 8) < limit ? C(0) : x * factor;
    }
  };

  /// Returns row i of problem number `problem`; `row` is its number among all rows.
  __device__ Row of(std::int64_t problem, int i, std::int64_t row) const {
    GeneratorState from{};
    if (limit > 0) {
      from = random::begin_of(random);
      from.offset += static_cast<std::uint64_t>(row * random_blocks);
    }
    return {choice.data ? choice.of(problem) + i * choice.line : nullptr,
            added.data ? added.of(problem) + i * added.line : nullptr,
            choice.data ? choice.step : added.step,
            from,
            limit,
            factor};
  }
};

/// Matrices that a kernel writes, with a dense last axis.
template <class T>
struct Result {
  T* data = nullptr;
  std::int64_t line = 0;
  BatchOffsets batch;

  __device__ T* row(std::int64_t problem, std::int64_t row) const { return data + batch.of(problem) + row * line; }
};

template <class T>
struct AttentionProblem : AttentionSizes {
  using C = ComputeType<T>;
  Operand<T> q, k, v;
  Result<T> out;     // (batch, L, Ev)
  C* lse = nullptr;  // (batch, L)
  C scale = 1;
  ScoreMask<C> mask;
};

template <class T>
struct AttentionGradients : AttentionSizes {
  using C = ComputeType<T>;
  Operand<T> q, k, v, g, out;  // g and out: (batch, L, Ev)
  const C* lse = nullptr;      // (batch, L)
  Result<T> dq, dk, dv;        // (batch, L, E), (batch, S, E), (batch, S, Ev)
  C scale = 1;
  ScoreMask<C> mask;
};

namespace detail {

/// Returns the matrices of a tensor; leading axes are merged if the strides allow.
template <class D>
Operand<D> matrices_of(const TensorView& t) {
  const int lead = t.dim() - 2;
  Operand<D> x;
  x.data = static_cast<const D*>(t.pointer);
  x.line = t.stride(lead), x.step = t.stride(lead + 1);
  BatchOffsets& batch = x.batch;
  for (int i = lead - 1; i >= 0; --i) {
    if (t.size(i) == 1) continue;
    const int last = batch.axes - 1;
    if (last >= 0 && t.stride(i) == batch.stride[last] * batch.size[last]) {
      batch.size[last] *= t.size(i);
    } else {
      batch.size[batch.axes] = t.size(i), batch.stride[batch.axes] = t.stride(i);
      ++batch.axes;
    }
  }
  return x;
}

/// Returns matrices with a dense last axis.
template <class D>
Operand<D> rows_of(const TensorView& t) {
  Operand<D> x = matrices_of<D>(t);
  x.step = 1;
  return x;
}

template <class D>
Result<D> result_of(const TensorView& t) {
  const Operand<D> x = matrices_of<D>(t);
  return {static_cast<D*>(t.pointer), x.line, x.batch};
}

template <class C>
ScoreMask<C> score_mask(const AttentionMask& m, std::int64_t columns) {
  ScoreMask<C> x;
  if (m.has_scores() && m.scores.dtype == DType::boolean) x.choice = matrices_of<bool>(m.scores);
  else if (m.has_scores()) x.added = matrices_of<C>(m.scores);
  x.random = m.random;
  x.random_blocks = static_cast<std::int64_t>(attention_random_blocks(columns));
  x.limit = dropout_limit(m.dropout);
  x.factor = static_cast<C>(dropout_factor(m.dropout));
  return x;
}

template <class D, class Args>
void set_common(const Args& a, D& p) {
  const int lead = a.q.dim() - 2;
  for (int i = 0; i < lead; ++i) p.batch *= a.q.size(i);
  p.rows = static_cast<int>(a.q.size(lead)), p.width = static_cast<int>(a.q.size(lead + 1));
  p.columns = static_cast<int>(a.k.size(lead)), p.values = static_cast<int>(a.v.size(lead + 1));
  p.causal = a.causal;
  p.scale = static_cast<typename D::C>(a.scale);
  p.mask = score_mask<typename D::C>(a.mask, p.columns);
}

}  // namespace detail

/// D is a device type.
template <class D>
AttentionProblem<D> attention_problem(const AttentionArgs& a) {
  AttentionProblem<D> p;
  detail::set_common(a, p);
  p.q = detail::rows_of<D>(a.q), p.k = detail::rows_of<D>(a.k), p.v = detail::rows_of<D>(a.v);
  p.out = detail::result_of<D>(a.out);
  p.lse = static_cast<ComputeType<D>*>(a.lse.pointer);
  return p;
}

template <class D>
AttentionGradients<D> attention_problem(const AttentionBackwardArgs& a) {
  AttentionGradients<D> p;
  detail::set_common(a, p);
  p.q = detail::rows_of<D>(a.q), p.k = detail::rows_of<D>(a.k), p.v = detail::rows_of<D>(a.v);
  p.g = detail::rows_of<D>(a.g), p.out = detail::rows_of<D>(a.out);
  p.lse = static_cast<const ComputeType<D>*>(a.lse.pointer);
  p.dq = detail::result_of<D>(a.dq), p.dk = detail::result_of<D>(a.dk), p.dv = detail::result_of<D>(a.dv);
  return p;
}

/// Returns the matrices (rows, width) of scratch memory.
template <class D>
Result<D> dense_rows(D* data, std::int64_t rows, std::int64_t width) {
  Result<D> x{data, width, {}};
  x.batch.axes = 1;
  x.batch.stride[0] = rows * width;
  return x;
}
template <class D>
Operand<D> as_operand(const Result<D>& x) {
  return {x.data, x.line, 1, x.batch};
}

/// Calls f(first, count) for ranges of the leading index whose (count, L, S) scores fit into about 256 MiB of scratch.
template <class F>
void for_score_chunks(const AttentionSizes& s, F&& f) {
  constexpr std::int64_t most = std::int64_t{1} << 26;
  const std::int64_t one = static_cast<std::int64_t>(s.rows) * s.columns, step = one < most ? most / one : 1;
  for (std::int64_t first = 0; first < s.batch; first += step)
    f(first, first + step < s.batch ? step : s.batch - first);
}

__device__ inline float exponential(float x) { return expf(x); }
__device__ inline double exponential(double x) { return exp(x); }
__device__ inline float logarithm(float x) { return logf(x); }
__device__ inline double logarithm(double x) { return log(x); }

/// Calls f(problem) with the device type.
template <class F>
void with_problem(const AttentionArgs& a, Stream&, F&& f) {
  dispatch_floating(a.q.dtype, "attention", [&]<class Element>() {
    const auto p = attention_problem<DeviceType<Element>>(a);
    if (!p.empty()) f(p);
  });
}

inline void set_zero(const TensorView& x, Stream& stream) {
  const std::int64_t bytes = x.numel() * size_of(x.dtype);
  if (bytes > 0)
    check(cudaMemsetAsync(x.pointer, 0, static_cast<std::size_t>(bytes), stream_of(stream)), "cudaMemsetAsync");
}

/// The same for gradients; those of k and v are zero if there is nothing to compute.
template <class F>
void with_problem(const AttentionBackwardArgs& a, Stream& stream, F&& f) {
  dispatch_floating(a.q.dtype, "attention_backward", [&]<class Element>() {
    const auto p = attention_problem<DeviceType<Element>>(a);
    if (!p.empty()) return f(p);
    set_zero(a.dk, stream);
    set_zero(a.dv, stream);
  });
}

}  // namespace levin::kernels::cuda
