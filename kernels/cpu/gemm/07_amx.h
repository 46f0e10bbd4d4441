#pragma once
// Rung 7, shipped where the processor has AMX: floats as sums of bfloat16 parts (G. Henry, P. T. P. Tang and A.
// Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations", 2019).
// Idea: a float of 24 bits is the sum of three bfloat16 numbers of 8 bits. Of the nine products of the parts of two
// floats, the six largest give the product to 2^-24, half a unit in the last place of a float, and the matrix unit adds
// them in float, 32 terms at a time. Changes: a core multiplies 16 times as many numbers in a cycle as with AVX-512, of
// which six products leave 2.7 times. Both operands are split once, while they are packed. Bound: the matrix unit; for
// small products the splitting, which reads and writes 10 bytes for each number. Gained over rung 6 on two cores of a
// Xeon (Sapphire Rapids): 1.1 to 1.55 times, where tiles stream from the second-level cache at most of its rate.
// The sums are as exact as those of the other rungs as long as no part and no product leaves the range of a float, for
// the unit takes subnormal numbers for zero. While they are packed, operands are searched for their least and largest
// magnitudes; a task whose operands might leave the range, or hold an infinity or NaN, is computed by rung 6.

#include "kernels/cpu/gemm/06_in_place.h"
#include "kernels/cpu/gemm/amx.h"

#include <atomic>
#include <cstddef>

namespace levin::kernels::cpu {

namespace detail {

/// The split of a product into blocks of C, tasks and ranges of the sums, by shape alone.
struct AmxPlan {
  static constexpr int64_t kBlock = 2 * kStripWidth;
  int64_t row_blocks, column_blocks, steps;  // blocks of C have 32 rows and columns
  int64_t row_tasks, column_tasks, ranges;

  AmxPlan(int64_t m, int64_t n, int64_t k)
      : row_blocks(divide_up(m, kBlock)), column_blocks(divide_up(n, kBlock)), steps(divide_up(k, kStepTerms)) {
    // Strips of 128 rows and 1,024 terms, and two of B, fit the second-level cache. C is read again for each range.
    constexpr int64_t task_blocks = 4, most_steps = 32, tasks_wanted = 8, own_block_steps = 64;
    row_tasks = divide_up(row_blocks, task_blocks);
    column_tasks = std::min(divide_up(column_blocks, 2), divide_up(tasks_wanted, row_tasks));
    if (owns_b())
      column_tasks = std::max(column_tasks, divide_up(column_blocks * std::min(steps, most_steps), own_block_steps));
    ranges = divide_up(steps, most_steps);
  }
  /// True if each task splits the columns that no other reads, next to their use.
  bool owns_b() const { return row_tasks == 1; }
  bool shares_a() const { return owns_b() || column_tasks > 1; }
  int64_t tasks() const { return row_tasks * column_tasks; }
  int64_t range_begin(int64_t range) const { return steps * range / ranges; }
  /// Returns the size of so many steps of B's strips.
  int64_t b_numbers(int64_t of_steps) const { return 2 * column_blocks * of_steps * kStepNumbers; }
};

/// Magnitudes of an operand of which several threads pack parts.
struct SharedMagnitudes {
  std::atomic<std::uint32_t> least{~0U}, most{0};

  void add(const Magnitudes& part) {
    std::uint32_t old = least;
    while (part.least < old && !least.compare_exchange_weak(old, part.least)) {}
    old = most;
    while (part.most > old && !most.compare_exchange_weak(old, part.most)) {}
  }
  Magnitudes value() const { return {least, most}; }
};

/// True if the unit computes products of such magnitudes as exactly as rung 6. Parts and products below 2^-126, which
/// it takes for zero, are then at most 2^-25 of a product, and no product overflows.
inline bool fit_matrix_unit(const Magnitudes& a, const Magnitudes& b) {
  constexpr int least = -101, most = 124;  // exponents of products, and of single numbers
  const auto exponent = [](std::uint32_t bits) { return static_cast<int>(bits >> 23) - 127; };
  if (exponent(a.most) > most || exponent(b.most) > most) return false;
  if (a.most == 0 || b.most == 0) return true;
  const int least_a = exponent(a.least + 1), least_b = exponent(b.least + 1);
  return std::min({least_a, least_b, least_a + least_b}) >= least && exponent(a.most) + exponent(b.most) <= most;
}

/// Terms [begin, end) of the sums, in steps, and the strips of them.
struct AmxRange {
  int64_t begin, end;
  const std::uint16_t *a, *b;  // strips of the task's rows and columns
  int64_t steps() const { return end - begin; }
};

/// Computes the block of C at (i, j).
inline void run_amx_block(const GemmArgs<float>& g, const MatrixUnit& unit, const AmxRange& range, int64_t i, int64_t j,
                          AmxBlock block) {
  constexpr int64_t size = AmxPlan::kBlock;
  const bool first = range.begin == 0;
  const int64_t rows = std::min(size, g.m - i), columns = std::min(size, g.n - j);
  float* const c = g.c + i * g.c_rs + j;
  block.row_strips = rows > kStripWidth ? 2 : 1;
  block.column_strips = columns > kStripWidth ? 2 : 1;
  block.c = c, block.c_rs = g.c_rs;
  const bool reads_c = !first || g.beta != 0.0F, adds_bias = first && g.bias_n;
  const bool ready = g.alpha == 1.0F && (!reads_c || ((!first || g.beta == 1.0F) && !adds_bias));
  if (rows % kStripWidth == 0 && columns % kStripWidth == 0 && ready) {
    if (reads_c) block.start = c, block.start_rs = g.c_rs;
    if (adds_bias) block.start = g.bias_n + j;
    return unit.block(block);
  }
  alignas(64) float start[size * size], sums[size * size];
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t q = 0; q < columns; ++q) {
      float value = adds_bias ? g.bias_n[j + q] : 0.0F;
      if (reads_c) value += (first ? g.beta : 1.0F) * c[r * g.c_rs + q];
      start[r * size + q] = value;
    }
  if (g.alpha == 1.0F) block.start = start, block.start_rs = size;
  block.c = sums, block.c_rs = size;
  unit.block(block);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t q = 0; q < columns; ++q) {
      const float sum = sums[r * size + q];
      c[r * g.c_rs + q] = g.alpha == 1.0F ? sum : g.alpha * sum + start[r * size + q];
    }
}

/// Computes rows [i0, i1) and columns [j0, j1) of C over a range of k, by blocks.
inline void run_amx_blocks(const GemmArgs<float>& g, const MatrixUnit& unit, const AmxRange& range, int64_t i0,
                           int64_t i1, int64_t j0, int64_t j1) {
  constexpr int64_t size = AmxPlan::kBlock;
  const int64_t strip = range.steps() * kStepNumbers;
  unit.begin();
  const std::uint16_t* b = range.b;
  for (int64_t j = j0; j < j1; j += size, b += 2 * strip) {
    const std::uint16_t* a = range.a;
    for (int64_t i = i0; i < i1; i += size, a += 2 * strip)
      run_amx_block(g, unit, range, i, j, {.steps = range.steps(), .a = a, .b = b, .strip = strip});
  }
  unit.end();
}

/// Computes rows [i0, i1) and columns [j0, j1) of C over a range of k, by rung 6.
inline void run_without_amx(const GemmArgs<float>& g, const AmxRange& range, int64_t i0, int64_t i1, int64_t j0,
                            int64_t j1) {
  const int64_t p0 = range.begin * kStepTerms, p1 = std::min(range.end * kStepTerms, g.k);
  GemmArgs<float> part = g;
  part.m = i1 - i0, part.n = j1 - j0, part.k = p1 - p0;
  part.a += i0 * g.a_rs + p0 * g.a_cs;
  part.b += p0 * g.b_rs + j0 * g.b_cs;
  part.c += i0 * g.c_rs + j0;
  if (part.bias_n) part.bias_n += j0;
  if (p0 > 0) part.beta = 1.0F, part.bias_n = nullptr;
  run_product(part, GemmPlan<float>(part, true, GemmPlan<float>::in_place_height(part)));
}

/// Splits rows [begin, end) of A, or columns of B, over terms [p0, p1) into strips from dst on; returns what it saw.
inline Magnitudes split_part(const GemmArgs<float>& g, bool of_a, int64_t begin, int64_t end, int64_t p0, int64_t p1,
                             std::uint16_t* dst, int64_t strip) {
  Magnitudes seen;
  gemm_ops<float>().split({.of_a = of_a,
                           .src = of_a ? g.a + begin * g.a_rs + p0 * g.a_cs : g.b + p0 * g.b_rs + begin * g.b_cs,
                           .i_stride = of_a ? g.a_rs : g.b_cs,
                           .p_stride = of_a ? g.a_cs : g.b_rs,
                           .count = end - begin,
                           .k = p1 - p0,
                           .dst = dst,
                           .strip = strip,
                           .seen = &seen});
  return seen;
}

/// Splits rows [begin, end) of A, or columns of B, over a range of k into strips of the calling thread.
inline const std::uint16_t* split_own(const GemmArgs<float>& g, bool of_a, const AmxRange& range, int64_t begin,
                                      int64_t end, Magnitudes& seen) {
  const int64_t strip = range.steps() * kStepNumbers;
  auto* own = scratch<std::uint16_t>(Slot::gemm_own_parts, divide_up(end - begin, kStripWidth) * strip);
  seen = split_part(g, of_a, begin, end, range.begin * kStepTerms, std::min(range.end * kStepTerms, g.k), own, strip);
  return own;
}

/// Splits the operands that several tasks share: pieces of 4 blocks of rows or columns and at most 16 steps.
struct SharedStrips {
  std::uint16_t *a, *b;
  SharedMagnitudes seen_a{}, seen_b{};

  [[gnu::noinline]] void fill(const GemmArgs<float>& g, int64_t begin, int64_t end, bool with_a, bool with_b) {
    constexpr int64_t at_once = 4 * AmxPlan::kBlock, piece_steps = 16;
    const int64_t pieces = divide_up(end - begin, piece_steps);
    const int64_t a_units = with_a ? divide_up(g.m, at_once) : 0;
    const int64_t units = a_units + (with_b ? divide_up(g.n, at_once) : 0);
    const int64_t strip = (end - begin) * kStepNumbers;
    parallel_for(0, units * pieces, 1, [&](int64_t first, int64_t last) {
      for (int64_t u = first; u < last; ++u) {
        const int64_t piece = u / units, unit = u % units;
        const bool of_a = unit < a_units;
        const int64_t at = (of_a ? unit : unit - a_units) * at_once, size = of_a ? g.m : g.n;
        const int64_t p0 = (begin + piece * piece_steps) * kStepTerms;
        const int64_t p1 = std::min({p0 + piece_steps * kStepTerms, end * kStepTerms, g.k});
        std::uint16_t* const dst = (of_a ? a : b) + at / kStripWidth * strip + piece * piece_steps * kStepNumbers;
        (of_a ? seen_a : seen_b).add(split_part(g, of_a, at, std::min(at + at_once, size), p0, p1, dst, strip));
      }
    });
  }
};

/// The memory of a matrix B that is split once for several products: its magnitudes in the first 64 bytes, then the
/// strips of one range after those of the other.
class PreparedB {
 public:
  explicit PreparedB(void* memory) : memory_(static_cast<std::byte*>(memory)) {}

  static int64_t bytes(const AmxPlan& plan) { return kHeader + plan.b_numbers(plan.steps) * kNumber; }
  Magnitudes& seen() const { return *reinterpret_cast<Magnitudes*>(memory_); }
  std::uint16_t* at(const AmxPlan& plan, int64_t step) const {
    return reinterpret_cast<std::uint16_t*>(memory_ + kHeader + plan.b_numbers(step) * kNumber);
  }
  void fill(const GemmArgs<float>& g, const AmxPlan& plan) const {
    SharedMagnitudes all;
    for (int64_t i = 0; i < plan.ranges; ++i) {
      SharedStrips shared{.a = nullptr, .b = at(plan, plan.range_begin(i))};
      shared.fill(g, plan.range_begin(i), plan.range_begin(i + 1), false, true);
      all.add(shared.seen_b.value());
    }
    seen() = all.value();
  }

 private:
  static constexpr int64_t kHeader = 64, kNumber = sizeof(std::uint16_t);
  std::byte* memory_;
};

/// Computes one task of the grid over steps [s, s_end).
inline void run_amx_task(const GemmArgs<float>& g, const MatrixUnit& unit, const AmxPlan& plan,
                         const SharedStrips& shared, int64_t s, int64_t s_end, int64_t task) {
  const auto edge = [](int64_t blocks, int64_t tasks, int64_t t, int64_t size) {
    return std::min(blocks * t / tasks * AmxPlan::kBlock, size);
  };
  const int64_t row_task = task / plan.column_tasks, column_task = task % plan.column_tasks;
  const int64_t i0 = edge(plan.row_blocks, plan.row_tasks, row_task, g.m);
  const int64_t i1 = edge(plan.row_blocks, plan.row_tasks, row_task + 1, g.m);
  const int64_t j0 = edge(plan.column_blocks, plan.column_tasks, column_task, g.n);
  const int64_t j1 = edge(plan.column_blocks, plan.column_tasks, column_task + 1, g.n);
  const int64_t strip = (s_end - s) * kStepNumbers;
  AmxRange range{s, s_end, shared.a + i0 / kStripWidth * strip, shared.b + j0 / kStripWidth * strip};
  Magnitudes seen_a = shared.seen_a.value(), seen_b = shared.seen_b.value();
  if (!plan.shares_a()) range.a = split_own(g, true, range, i0, i1, seen_a);
  if (plan.owns_b() && !g.prepared_b) range.b = split_own(g, false, range, j0, j1, seen_b);
  fit_matrix_unit(seen_a, seen_b) ? run_amx_blocks(g, unit, range, i0, i1, j0, j1)
                                  : run_without_amx(g, range, i0, i1, j0, j1);
}

/// Computes a product of which B's strips of a range may be in memory at once.
inline void run_amx_columns(const GemmArgs<float>& g, const MatrixUnit& unit) {
  const AmxPlan plan(g.m, g.n, g.k);
  const int64_t most_steps = divide_up(plan.steps, plan.ranges);
  const PreparedB prepared(g.prepared_b);
  if (g.prepared_b && g.prepare_b) prepared.fill(g, plan);
  const bool shares_b = !g.prepared_b && !plan.owns_b();
  const int64_t b_numbers = shares_b ? plan.b_numbers(most_steps) : 0;
  const int64_t a_numbers = plan.shares_a() ? 2 * plan.row_blocks * most_steps * kStepNumbers : 0;
  std::uint16_t* const packed = scratch<std::uint16_t>(Slot::gemm_parts, a_numbers + b_numbers);
  for (int64_t i = 0; i < plan.ranges; ++i) {
    const int64_t s = plan.range_begin(i), s_end = plan.range_begin(i + 1);
    SharedStrips shared{.a = packed + b_numbers, .b = g.prepared_b ? prepared.at(plan, s) : packed};
    if (g.prepared_b) shared.seen_b.add(prepared.seen());
    shared.fill(g, s, s_end, plan.shares_a(), shares_b);
    parallel_for(0, plan.tasks(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) run_amx_task(g, unit, plan, shared, s, s_end, task);
    });
  }
}

/// Computes one product, so many columns at once that the strips of B that tasks share have at most `most_bytes`.
inline void run_amx(const GemmArgs<float>& g, const MatrixUnit& unit, int64_t most_bytes = int64_t{8} << 20) {
  const AmxPlan plan(g.m, g.n, g.k);
  const int64_t block_bytes = 2 * kStepNumbers * divide_up(plan.steps, plan.ranges) * 2;
  const int64_t columns = std::max<int64_t>(1, most_bytes / block_bytes) * AmxPlan::kBlock;
  if (g.prepared_b || plan.owns_b() || columns >= g.n) return run_amx_columns(g, unit);
  for (int64_t j = 0; j < g.n; j += columns) {
    GemmArgs<float> part = g;
    part.n = std::min(columns, g.n - j);
    part.b += j * g.b_cs, part.c += j;
    if (g.bias_n) part.bias_n += j;
    run_amx_columns(part, unit);
  }
}

/// True if the product takes less time by the matrix unit: it is large, and each number of an operand is used so often
/// that splitting it pays off, more seldom where many tasks of columns split B next to its use. Short sums into a C
/// beyond the second-level cache take the time that C takes. The limits fit measurements of 60 shapes on two cores of a
/// Xeon (Sapphire Rapids).
inline bool is_faster_by_amx(const GemmArgs<float>& g) {
  constexpr int64_t least_terms = 128, short_sums = 192, far_c = 1 << 20, many_columns = 512, few_rows = 128;
  constexpr double least_work = 1 << 24;
  const double work = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  if (g.k < least_terms || work < least_work || (g.k < short_sums && g.m * g.n > far_c)) return false;
  const int64_t least_uses = g.m <= few_rows && g.n >= many_columns ? 56 : 88;
  return least_uses * (g.m + g.n) <= g.m * g.n;
}

/// Returns the matrix unit, or null if there is none or the kernels do not use AVX-512.
inline const MatrixUnit* usable_amx_unit() { return gemm_ops<float>().wide_vectors() ? amx_unit() : nullptr; }

inline void run_shipped(const GemmArgs<float>& g) {
  const MatrixUnit* const unit = usable_amx_unit();
  if (unit && (g.prepared_b || is_faster_by_amx(g))) return run_amx(g, *unit);
  run_in_place(g);
}

}  // namespace detail

/// Requires m, n, k >= 1.
inline void gemm_amx(const GemmArgs<float>& args) { detail::each_product<float>(args, &detail::run_shipped); }

}  // namespace levin::kernels::cpu
