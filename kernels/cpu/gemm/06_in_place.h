#pragma once
// Rung 6, the shipped one: operands in place.
// Idea: do not copy what the tile can read fast enough where it is. Rows less than a page apart are such operands: the
// tile's few streams hit the caches and the TLB as packed ones do. With few rows of C, each element of B is used so few
// times that copying takes longer than multiplying: wide tiles read contiguous rows of B in long runs, and contiguous
// columns (the weight of a linear layer) are multiplied with rows of A as dot products. A product with one column is
// one with one row, transposed. Sums of a few terms write C row by row. Changes: small products need no packing and one
// parallel region instead of two; for few rows B is read once and not written. Bound: the multipliers; for few rows the
// rate at which a cache or the memory delivers B. Gained over rung 5 on two cores: 1.3 times at 128, 1.1 at 256, 6
// times for the gradient of one row by a weight (1024, 1024); nothing from 1024 on, where rows are a page apart. Dot
// products of one row by a weight (512, 784) take 8 us on a Xeon, where transposing squares of B in registers took 24.
// Rows that share few sets of a first-level cache of 32 KiB are packed after all: on a Zen 3 that is 1.2 times as fast
// at 512, and 1.2 to 1.36 times for gradients of weights whose rows are 2 or 3 KiB apart. With 64-byte vectors on an
// Intel processor, so are rows of A that more than seven panels read, and lines more than 1 KiB apart: 1.05 to 1.1
// times on two cores of a Xeon, gradients of weights up to 1.3 times; a Zen 5 would lose as much. More than a few rows
// of a linear layer are computed as columns of the transposed product, which reads the weight in place: on one core of
// a Zen 3, 1.45 times as fast with 16 rows (512 x 784), 1.25 with 32, 1.07 with 64, and 1.03 to 1.5 with up to 128
// rows and k of 1024 or more; on two cores of a Xeon, 1.01 to 1.2 with 16 rows, 1.1 to 1.25 with 32, 1.0 to 1.04 with
// 64, and 1.0 to 1.35 with k of 1024 or more; of a Zen 5, 1.3 to 1.5, 1.2, 1.0 to 1.1 and 1.05 to 1.5.

#include "kernels/cpu/gemm/05_threads.h"
#include "kernels/cpu/transpose.h"

namespace levin::kernels::cpu {

namespace detail {

/// True if B can be read in place, and C has so few rows that this is faster than packing B.
template <class T>
bool has_few_rows(const GemmArgs<T>& g) {
  const GemmOps<T>& ops = gemm_ops<T>();
  return (g.b_cs == 1 && g.m <= ops.wide_height) || (g.b_rs == 1 && g.m <= ops.columns_height);
}

/// Returns A's rows (m, k), contiguous along k: in place, with `step` elements between rows, or copied.
template <class T>
const T* contiguous_rows(const GemmArgs<T>& g, int64_t& step) {
  step = g.a_rs;
  if (g.a_cs == 1) return g.a;
  step = g.k;
  T* rows = scratch<T>(Slot::gemm_a, g.m * g.k + kPackSlack);
  gemm_ops<T>().pack(g.a, g.a_cs, g.a_rs, g.k, g.m, g.k, rows);
  return rows;
}

/// Computes columns [begin, end) of C.
template <class T>
void few_rows_task(const GemmArgs<T>& g, int64_t begin, int64_t end) {
  constexpr int64_t far_bytes = int64_t{8} << 20;  // of B: too much to be in a cache
  const GemmOps<T>& ops = gemm_ops<T>();
  const bool by_column = g.b_cs != 1 || g.m > ops.wide_height;
  FewRowsArgs<T> few{.m = g.m,
                     .n = end - begin,
                     .b_step = by_column ? g.b_cs : g.b_rs,
                     .by_column = by_column,
                     .far = g.k * g.n * static_cast<int64_t>(sizeof(T)) > far_bytes,
                     .c = g.c + begin,
                     .c_rs = g.c_rs,
                     .alpha = g.alpha,
                     .beta = g.beta,
                     .bias = g.bias_n ? g.bias_n + begin : nullptr};
  if (by_column) {
    few.k = g.k;
    few.a = contiguous_rows(g, few.a_step);
    few.b = g.b + begin * g.b_cs;
    return ops.few_rows(few);
  }
  const RowBlocks rows(g.m, g.m);
  const KChunks<T> chunks(g.k);
  T* packed = g.m > 1 ? scratch<T>(Slot::gemm_a, packed_a_size(rows, chunks.longest())) : nullptr;
  for (int64_t chunk = 0; chunk < chunks.count; ++chunk) {
    const int64_t p0 = chunks.start(chunk);
    few.k = chunks.size(chunk);
    few.a = g.a + p0 * g.a_cs;
    few.a_step = g.a_cs;
    if (packed) {
      pack_a(g, rows, 0, 1, p0, few.k, packed);
      few.a = packed;
      few.a_step = g.m;
    }
    few.b = g.b + p0 * g.b_rs + begin;
    ops.few_rows(few);
    few.beta = T(1);
    few.bias = nullptr;
  }
}

/// Splits the columns into tasks by shape alone. Reading an element of B takes as long as `reading` multiply-adds.
template <class T>
void run_few_rows(const GemmArgs<T>& g) {
  constexpr double task_work = 1 << 20, reading = 8, most_tasks = 16;
  const double work = (static_cast<double>(g.m) + reading) * static_cast<double>(g.n) * static_cast<double>(g.k);
  const auto tasks = static_cast<int64_t>(std::clamp(work / task_work, 1.0, most_tasks));
  // Columns that one task takes: those of the widest tile, eight vectors, or with few columns those of two vectors.
  const int64_t panel = gemm_ops<T>().panel_width, unit = g.n < 8 * panel ? panel : 4 * panel;
  const int64_t grain = (g.n + tasks * unit - 1) / (tasks * unit) * unit;
  parallel_for(0, g.n, grain, [&](int64_t begin, int64_t end) { few_rows_task(g, begin, end); });
}

/// True if C is mostly written: sums of so few terms that rows of C, in long runs, are faster than tiles. Rows whole
/// pages apart share the sets of the cache, so that a tile's rows evict each other before their lines are full.
template <class T>
bool has_short_sums(const GemmArgs<T>& g) {
  constexpr int64_t size = sizeof(T), near_bytes = 128 << 10;  // of B, which the next row reads again
  const int64_t most_terms = g.c_rs * size % 4096 == 0 ? 8 : 4;
  return g.k <= most_terms && g.b_cs == 1 && g.k * g.n * size <= near_bytes && g.n >= 4 * gemm_ops<T>().panel_width;
}

template <class T>
void run_short_sums(const GemmArgs<T>& g) {
  constexpr int64_t task_elements = 1 << 15;
  parallel_for(0, g.m, std::max<int64_t>(1, task_elements / g.n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      gemm_ops<T>().few_rows({.m = 1,
                              .n = g.n,
                              .k = g.k,
                              .a = g.a + i * g.a_rs,
                              .a_step = g.a_cs,
                              .b = g.b,
                              .b_step = g.b_rs,
                              .c = g.c + i * g.c_rs,
                              .c_rs = g.c_rs,
                              .alpha = g.alpha,
                              .beta = g.beta,
                              .bias = g.bias_n});
    }
  });
}

/// C = A b is computed as C^T = b^T A^T, which has one row.
template <class T>
GemmArgs<T> transposed_column(const GemmArgs<T>& g) {
  GemmArgs<T> row = g;
  row.m = 1, row.n = g.m, row.c_rs = g.m;
  row.a = g.b, row.a_rs = g.b_cs, row.a_cs = g.b_rs;
  row.b = g.a, row.b_rs = g.a_cs, row.b_cs = g.a_rs;
  return row;
}

/// True if C^T = B^T A^T takes less time: B's contiguous columns, as of the weight of a linear layer, are then the rows
/// of the first operand, which is read in place, and of A's few rows little is packed. The results wait in scratch
/// memory, so there must not be many. The limits fit measurements of 120 shapes on a Zen 3 and, for 64-byte vectors, of
/// 66 on a Xeon.
template <class T>
bool is_faster_transposed(const GemmArgs<T>& g) {
  constexpr int64_t most_elements = 1 << 20;
  if (g.b_rs != 1 || g.beta != T(0) || g.m * std::max(g.n, g.k) > most_elements || (g.alpha != T(1) && g.bias_n))
    return false;
  const GemmOps<T>& ops = gemm_ops<T>();
  const bool wide = ops.wide_vectors();
  const int64_t unit = wide && g.m <= ops.lanes ? ops.lanes : ops.panel_width;
  const int64_t computed = (g.m + unit - 1) / unit * unit;
  if (9 * g.m < 8 * computed) return false;
  if (!wide || g.m <= ops.panel_width) return 5 * g.m * (g.n + g.k) < 2 * g.n * g.k;
  if (g.m <= 2 * ops.panel_width) return g.n >= 128 && g.k >= 512;
  return g.m <= 4 * ops.panel_width && g.n >= 128 && g.n <= 512 && g.k >= 1024;
}

/// Computes C^T by tasks of its rows, each of which transposes its results into C. Elements of C are the same sums, in
/// the same order.
template <class T>
void run_transposed(const GemmArgs<T>& g) {
  GemmArgs<T> t = g;
  t.m = g.n, t.n = g.m, t.c_rs = g.m, t.bias_n = nullptr, t.beta = g.bias_n ? T(1) : T(0);
  t.a = g.b, t.a_rs = g.b_cs, t.a_cs = g.b_rs;
  t.b = g.a, t.b_rs = g.a_cs, t.b_cs = g.a_rs;
  // Lower blocks gain with one vector of columns; with more they took up to 1.05 times as long from memory (Zen 5).
  const GemmOps<T>& ops = gemm_ops<T>();
  GemmPlan<T> plan(t, true, t.n <= ops.lanes ? GemmPlan<T>::in_place_height(t) : ops.max_height);
  plan.a_in_place = true, plan.share_a = false;
  const int64_t width = plan.ops.panel_width;
  T* const packed = scratch<T>(Slot::gemm_shared, plan.panels * width * t.k);
  t.c = scratch<T>(Slot::gemm_results, t.m * t.n);
  const KRange<T> range{0, plan.chunks.count, nullptr, packed};
  if (plan.share_b) pack_shared(t, plan, range);
  parallel_for(0, plan.tasks(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t row_task = task / plan.column_tasks, column_task = task % plan.column_tasks;
      const int64_t i1 = plan.blocks.start(plan.block_begin(row_task + 1));
      const int64_t j0 = plan.panel_begin(column_task) * width;
      const int64_t j1 = std::min(plan.panel_begin(column_task + 1) * width, t.n);
      const int64_t i0 = plan.blocks.start(plan.block_begin(row_task));
      if (g.bias_n)
        for (int64_t i = i0; i < i1; ++i) std::fill_n(t.c + i * t.n + j0, j1 - j0, g.bias_n[i]);
      run_task(t, plan, range, task);
      for (int64_t i = i0; i < i1; i += kTile)
        for (int64_t j = j0; j < j1; j += kTile)
          transpose_tile(sizeof(T), g.c + j * g.c_rs + i, g.c_rs, t.c + i * t.n + j, t.n, std::min(kTile, i1 - i),
                         std::min(kTile, j1 - j));
    }
  });
}

template <class T>
void run_in_place(const GemmArgs<T>& g) {
  if (g.n == 1 && g.m > 1 && g.c_rs == 1 && !g.bias_n && has_few_rows(transposed_column(g)))
    return run_few_rows(transposed_column(g));
  if (has_few_rows(g)) return run_few_rows(g);
  if constexpr (sizeof(T) == 4)  // which keeps programs small
    if (is_faster_transposed(g)) return run_transposed(g);
  has_short_sums(g) ? run_short_sums(g) : run_product(g, GemmPlan<T>(g, true, GemmPlan<T>::in_place_height(g)));
}

}  // namespace detail

/// Requires m, n, k >= 1.
template <class T>
void gemm_in_place(const GemmArgs<T>& args) {
  detail::each_product<T>(args, &detail::run_in_place<T>);
}

}  // namespace levin::kernels::cpu
