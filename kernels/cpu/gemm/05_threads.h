#pragma once
// Rung 5: tasks for threads, and no packing that does not pay off.
// Idea: split C into a grid of tasks by shape alone. Data that several tasks read are packed once, by all threads
// together; data that only one task reads are packed by that task, next to their use. Operands that the register tile
// can read in place and that are read once or twice are not packed at all. In batches of small products, each product
// is one task. Changes: all cores; small and skinny products lose less to packing. Bound: the multipliers of all cores;
// for a few rows or columns the memory bandwidth. Gained at 1024 over rung 4: 1.9 times on two cores; a batch of 48
// products (128, 32, 128): 2 times.

#include "kernels/cpu/gemm/04_packed.h"

#include <levin/core/parallel.h>

namespace levin::kernels::cpu {

namespace detail {

constexpr int64_t divide_up(int64_t x, int64_t y) { return (x + y - 1) / y; }

/// The split of one product into tasks (rows x columns), and which operands are packed, and by whom.
template <class T>
struct GemmPlan {
  const GemmOps<T>& ops = gemm_ops<T>();
  RowBlocks blocks;
  KChunks<T> chunks;
  int64_t panels, row_tasks, column_tasks;
  bool a_in_place, b_in_place, share_a, share_b;
  static constexpr int64_t kFewBlocks = 10, kRowsOfSet = 11, kFarPanels = 4;

  /// Operands that are read once or twice are not packed; if `near_in_place`, nor are those whose rows are near. Blocks
  /// have at most `height` rows. This is a kilobyte of code, too much to be inlined into each caller.
  [[gnu::noinline]] GemmPlan(const GemmArgs<T>& g, bool near_in_place, int64_t height)
      : blocks(g.m, height), chunks(g.k), panels((g.n + ops.panel_width - 1) / ops.panel_width) {
    constexpr double task_work = 1 << 20, most_tasks = 16;
    constexpr int64_t max_rows = 192, max_panels = 8;
    const double work = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
    const auto wanted = static_cast<int64_t>(std::clamp(work / task_work, 1.0, most_tasks));
    row_tasks = divide_up(g.m, max_rows);
    column_tasks = std::max(divide_up(panels, max_panels), std::min(panels, divide_up(wanted, row_tasks)));
    row_tasks = std::min(blocks.count, std::max(row_tasks, divide_up(wanted, column_tasks)));
    const int64_t a_step = g.a_rs == 1 ? g.a_cs : g.a_cs == 1 ? g.a_rs : 0, b_step = g.b_cs == 1 ? g.b_rs : 0;
    constexpr int64_t few_rows = 140, near_a_lines = 1024, near_b_rows = 2048 - 64;  // the last two in bytes
    const bool near_a = g.a_rs == 1 ? near_lines(a_step) && stays_near(a_step, near_a_lines) : near_rows(a_step);
    a_in_place = a_step != 0 && (panels <= 2 || (near_in_place && near_a));
    const bool near_b = near(b_step) && (blocks.count <= kFewBlocks || stays_near(b_step, near_b_rows));
    const bool spread_b = g.m <= few_rows && spread(b_step);
    b_in_place = b_step != 0 && g.n >= ops.panel_width &&
                 (blocks.count <= 2 || (near_in_place && (near_b || spread_b)));
    share_a = column_tasks > 1 && !a_in_place;
    share_b = row_tasks > 1 && !b_in_place;
  }
  /// True if rows this many elements apart are less than a page apart. In place, those are as fast as packed ones, and
  /// packing is saved; farther ones fall into few sets of the caches and many pages, and are slower.
  static bool near(int64_t step) { return step * static_cast<int64_t>(sizeof(T)) < 4096; }
  /// True if rows of A, contiguous along k, are as fast in place as packed ones, or packing them would take more time
  /// than it saves. If k has several chunks, a chunk reads only a part of each row, which is slower in place; so is any
  /// row where `slow_in_place`. Many panels and blocks then pay for packing. Far rows share one set of the first-level
  /// cache, which a block of up to 11 fits: if few panels read few such blocks, packing costs more than their misses,
  /// for 32 x 256 x 1024 a third of the time (Xeon and Zen 5, two threads).
  bool near_rows(int64_t step) const {
    constexpr int64_t few_panels = 7, many = 16;
    const bool fits_set = blocks.size(0) <= kRowsOfSet;
    if (!near(step) && ops.fast_in_place())
      return spread(step) || (fits_set && (panels <= kFarPanels || blocks.count <= kFewBlocks / 2));
    if (!near(step) && !fits_set) return false;
    if (ops.slow_in_place()) return panels <= few_panels || blocks.count <= kFewBlocks;
    if (!near(step)) return blocks.count <= kFewBlocks / 2;
    return chunks.count == 1 || panels <= many || blocks.count <= many;
  }
  /// True if lines of A, contiguous along its rows, are less than a page apart, or spread over the sets where 64-byte
  /// vectors are fast in place (Zen 5: 1024 x 256 x 2048 tn, lines 4,160 bytes apart, 1.045 to 1.07 times).
  bool near_lines(int64_t step) const { return near(step) || (ops.fast_in_place() && spread(step)); }
  /// True if the next tile reads lines this many elements apart, one for each k of a chunk, as fast as packed ones.
  /// With vectors of less than 64 bytes, at least half of the lines must stay in the first-level cache, as packed ones
  /// do; lines 1 KiB apart, for example, share four of its 64 sets. Packed panels of 64-byte vectors do not stay there
  /// either, so nothing is lost, but where `slow_in_place`: then lines must be at most `most_bytes` apart.
  bool stays_near(int64_t step, int64_t most_bytes) const {
    constexpr int64_t line = 64, sets = 64, ways = 8;
    const int64_t bytes = step * static_cast<int64_t>(sizeof(T));
    if (ops.wide_vectors()) return !ops.slow_in_place() || bytes <= most_bytes;
    const int64_t used_sets = sets * line / std::clamp(bytes & -bytes, line, sets * line);  // by its power of two
    return 2 * used_sets * ways >= chunks.longest();
  }
  /// True if farther rows are spread over the sets of the caches. Unless `fast_in_place`, reading them in place takes
  /// longer than reading packed ones, but the blocks of 140 rows read B too rarely for packing it to pay off.
  static bool spread(int64_t step) {
    const int64_t bytes = step * static_cast<int64_t>(sizeof(T));
    return bytes % 1024 != 0 && bytes < 16384;
  }
  /// Returns the most rows of a block: those of the tile, or so many far rows that share one set of the first-level
  /// cache as fit it, where few panels read them in place (Zen 5: 128 x 128 x 9216 1.07 to 1.12 times, 512 x 128 x 2048
  /// 1.08 to 1.13; blocks of 12 rows 0.93 to 1.0; 64 rows, which are few blocks, 0.98).
  static int64_t in_place_height(const GemmArgs<T>& g) {
    const GemmOps<T>& ops = gemm_ops<T>();
    const bool shares_sets = g.a_cs == 1 && !near(g.a_rs) && !spread(g.a_rs);
    const bool few_panels = g.n <= kFarPanels * ops.panel_width, few_blocks = g.m <= kFewBlocks / 2 * ops.max_height;
    return ops.fast_in_place() && shares_sets && few_panels && !few_blocks ? kRowsOfSet : ops.max_height;
  }
  int64_t tasks() const { return row_tasks * column_tasks; }
  int64_t block_begin(int64_t row_task) const { return blocks.count * row_task / row_tasks; }
  int64_t panel_begin(int64_t column_task) const { return panels * column_task / column_tasks; }
};

/// Chunks [begin, end) of k, and the shared operands packed for chunks from `packed` on, one chunk after the other.
template <class T>
struct KRange {
  int64_t begin, end;
  T *a, *b;
  int64_t packed = 0;
};

template <class T>
T* shared_a(const GemmPlan<T>& plan, const KRange<T>& range, int64_t chunk) {
  const int64_t done = plan.chunks.start(chunk) - plan.chunks.start(range.packed);
  return range.a + packed_a_size(plan.blocks, done, chunk - range.packed);
}

template <class T>
T* shared_b(const GemmPlan<T>& plan, const KRange<T>& range, int64_t chunk) {
  return range.b + (plan.chunks.start(chunk) - plan.chunks.start(range.packed)) * plan.panels * plan.ops.panel_width;
}

/// Computes one task of the grid over a range of k.
template <class T>
void run_task(const GemmArgs<T>& g, const GemmPlan<T>& plan, const KRange<T>& range, int64_t task) {
  const int64_t width = plan.ops.panel_width;
  const int64_t row_task = task / plan.column_tasks, column_task = task % plan.column_tasks;
  const int64_t i0 = plan.block_begin(row_task), i1 = plan.block_begin(row_task + 1);
  const int64_t j0 = plan.panel_begin(column_task) * width;
  const int64_t j1 = std::min(plan.panel_begin(column_task + 1) * width, g.n);
  for (int64_t chunk = range.begin; chunk < range.end; ++chunk) {
    const int64_t p0 = plan.chunks.start(chunk), length = plan.chunks.size(chunk);
    BlockArgs<T> block{&plan.blocks, i0, i1,  j0,     j1,      length, nullptr, 0, 0,
                       nullptr,      0,  g.c, g.c_rs, g.alpha, g.beta, g.bias_n};
    if (chunk > 0) {
      block.beta = T(1);
      block.bias = nullptr;
    }
    if (plan.a_in_place) {
      block.a = g.a + plan.blocks.start(i0) * g.a_rs + p0 * g.a_cs;
      (g.a_rs == 1 ? block.a_step : block.a_row_step) = g.a_rs == 1 ? g.a_cs : g.a_rs;
    } else if (plan.share_a) {
      block.a = shared_a(plan, range, chunk) + packed_a_offset(plan.blocks, 0, i0, length);
    } else {
      T* own = scratch<T>(Slot::gemm_a, packed_a_offset(plan.blocks, i0, i1, plan.chunks.longest()));
      pack_a(g, plan.blocks, i0, i1, p0, length, own);
      block.a = own;
    }
    if (plan.b_in_place) {
      const int64_t whole = std::min(j1, g.n / width * width);  // the tile reads whole panels
      if (j0 < whole) {
        block.n_end = whole;
        block.b = g.b + p0 * g.b_rs + j0;
        block.b_step = g.b_rs;
        plan.ops.block(block);
      }
      if (whole == j1) continue;
      block.n_begin = whole;
      block.n_end = j1;
      block.b_step = 0;
    }
    if (plan.share_b) {
      block.b = shared_b(plan, range, chunk) + j0 * length;
    } else {
      T* own = scratch<T>(Slot::gemm_b, packed_b_size<T>(j1 - block.n_begin, plan.chunks.longest()));
      pack_b(g, block.n_begin, j1, p0, length, own);
      block.b = own;
    }
    plan.ops.block(block);
  }
}

/// Packs the operands that several tasks share: units of 8 row blocks of A, then of 4 panels of B, for each chunk of
/// the range. If B has at most 8 panels, each is a unit, so that all threads take part.
template <class T>
void pack_shared(const GemmArgs<T>& g, const GemmPlan<T>& plan, const KRange<T>& range) {
  constexpr int64_t unit_blocks = 8, few_panels = 8;
  const int64_t width = plan.ops.panel_width, unit_panels = plan.panels <= few_panels ? 1 : 4;
  const int64_t a_units = plan.share_a ? divide_up(plan.blocks.count, unit_blocks) : 0;
  const int64_t b_units = plan.share_b ? divide_up(plan.panels, unit_panels) : 0;
  const int64_t units = a_units + b_units;
  parallel_for(0, units * (range.end - range.begin), 1, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const int64_t chunk = range.begin + u / units, unit = u % units;
      const int64_t p0 = plan.chunks.start(chunk), length = plan.chunks.size(chunk);
      if (unit < a_units) {
        const int64_t i0 = unit * unit_blocks, i1 = std::min(i0 + unit_blocks, plan.blocks.count);
        pack_a(g, plan.blocks, i0, i1, p0, length,
               shared_a(plan, range, chunk) + packed_a_offset(plan.blocks, 0, i0, length));
      } else {
        const int64_t j0 = (unit - a_units) * unit_panels * width, j1 = std::min(j0 + unit_panels * width, g.n);
        pack_b(g, j0, j1, p0, length, shared_b(plan, range, chunk) + j0 * length);
      }
    }
  });
}

/// Computes one product. Shared packing processes as many chunks of k at once as fit into 8 MiB, so that small products
/// need two parallel regions and large ones little memory. Where B is in place, or no operand is shared, tasks that
/// read the same rows of B compute one chunk at a time: the rows are then still in the second-level cache when the next
/// task reads them.
template <class T>
void run_product(const GemmArgs<T>& g, const GemmPlan<T>& plan) {
  constexpr int64_t shared_bytes = int64_t{8} << 20;
  const int64_t longest = plan.chunks.longest();
  const int64_t a_size = plan.share_a ? packed_a_size(plan.blocks, longest) : 0;
  const int64_t b_size = plan.share_b ? packed_b_size<T>(g.n, longest) : 0;
  const bool by_chunk = plan.row_tasks > 1 && (plan.b_in_place || a_size + b_size == 0);
  int64_t at_once = plan.chunks.count;
  T* shared = nullptr;
  if (a_size + b_size > 0) {
    const int64_t most = shared_bytes / static_cast<int64_t>(sizeof(T)) / (a_size + b_size);
    at_once = std::clamp<int64_t>(most, 1, plan.chunks.count);
    shared = scratch<T>(Slot::gemm_shared, (a_size + b_size) * at_once);
  }
  for (int64_t chunk = 0; chunk < plan.chunks.count; chunk += at_once) {
    const int64_t last = std::min(chunk + at_once, plan.chunks.count);
    KRange<T> range{chunk, last, shared, shared + a_size * at_once, chunk};
    if (shared) pack_shared(g, plan, range);
    for (int64_t done = chunk; done < last; done = range.end) {
      range.begin = done, range.end = by_chunk ? done + 1 : last;
      parallel_for(0, plan.tasks(), 1, [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) run_task(g, plan, range, task);
      });
    }
  }
}

template <class T>
GemmArgs<T> batch_item(const GemmArgs<T>& g, int64_t i) {
  GemmArgs<T> one = g;
  one.a += i * g.a_bs;
  one.b += i * g.b_bs;
  one.c += i * g.c_bs;
  one.batch = 1;
  return one;
}

/// Calls run for each product of the batch: small ones in parallel, large ones one after the other.
template <class T>
void each_product(GemmArgs<T> g, void (*run)(const GemmArgs<T>&)) {
  if (g.batch > 1 && g.b_bs == 0 && g.a_bs == g.m * g.a_rs && g.c_bs == g.m * g.c_rs) {
    g.m *= g.batch;  // all share one B: the batch only adds rows
    g.batch = 1;
  }
  constexpr double small_product = 1 << 24, task_work = 1 << 19;
  const double work = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  if (g.batch > 1 && work < small_product) {
    const auto grain = static_cast<int64_t>(std::max(1.0, task_work / work));
    parallel_for(0, g.batch, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) run(batch_item(g, i));
    });
  } else {
    for (int64_t i = 0; i < g.batch; ++i) run(batch_item(g, i));
  }
}

}  // namespace detail

/// Requires m, n, k >= 1.
template <class T>
void gemm_threads(const GemmArgs<T>& args) {
  detail::each_product<T>(args, [](const GemmArgs<T>& g) {
    detail::run_product(g, detail::GemmPlan<T>(g, false, gemm_ops<T>().max_height));
  });
}

}  // namespace levin::kernels::cpu
