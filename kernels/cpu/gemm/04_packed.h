#pragma once
// Rung 4: packed operands, blocked for the caches (K. Goto and R. van de Geijn, "Anatomy of high-performance matrix
// multiplication", 2008).
// Idea: copy a block of A (192 rows by a chunk of k) and a slab of B (256 columns) into the order in which the register
// tile reads them. Both stay in L2 while the tiles of their product are computed. Changes: every inner load hits L1 or
// streams from L2; transposes cost nothing extra, since packing reads any strides. Bound: the multipliers, 85 to 95 %
// of one core's peak; packing is work of order mk + kn compared with mnk. One thread. Gained at 1024 over rung 3: 4
// times on one AVX-512 core.

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/ops.h"
#include "kernels/cpu/scratch.h"

#include <algorithm>

namespace levin::kernels::cpu {

/// k is split into chunks of nearly equal length: long ones, since C is read and written once per chunk (768 floats
/// with AVX-512, 384 with AVX2, where second-level caches are smaller). The split depends only on k and the instruction
/// set, so each element's sum is formed in the same order whatever the rest of the shape, the layout and the threads.
template <class T>
struct KChunks {
  int64_t k, count;
  explicit KChunks(int64_t k_) : k(k_) {
    const int64_t longest_allowed = int64_t{gemm_ops<T>().panel_width} * 96 / static_cast<int64_t>(sizeof(T));
    count = (k + longest_allowed - 1) / longest_allowed;
  }
  int64_t start(int64_t chunk) const { return k * chunk / count; }
  int64_t size(int64_t chunk) const { return start(chunk + 1) - start(chunk); }
  int64_t longest() const { return (k + count - 1) / count; }
};

/// Packs row blocks [begin, end) of A for k in [p0, p0 + length). Adjacent rows, as in the gradient of a linear layer's
/// weight, are packed eight blocks at once: 1.5 to 2.3 times as fast on a Zen 3.
template <class T>
void pack_a(const GemmArgs<T>& g, const RowBlocks& blocks, int64_t begin, int64_t end, int64_t p0, int64_t length,
            T* dst) {
  constexpr int64_t at_once = 8;
  const GemmOps<T>& ops = gemm_ops<T>();
  for (int64_t i = begin, count; i < end; i += count) {
    const int64_t row = blocks.start(i), height = blocks.size(i), last = std::min(i + at_once, end) - 1;
    const T* from = g.a + row * g.a_rs + p0 * g.a_cs;
    T* to = dst + packed_a_offset(blocks, begin, i, length);
    if constexpr (sizeof(T) == 4) {  // which keeps programs small
      const int64_t read_to = blocks.start(last) + kPackSlack;  // at most, by whole vectors
      if (g.a_rs == 1 && g.a_cs != 1 && blocks.size(last) == height && read_to <= blocks.rows) {
        count = last - i + 1;
        ops.pack_lines(from, g.a_cs, height, count, height * length + kPackSlack, length, to);
        continue;
      }
    }
    count = 1;
    ops.pack(from, g.a_rs, g.a_cs, height, length, height, to);
  }
}

/// Packs the panels of B's columns [begin, end).
template <class T>
void pack_b(const GemmArgs<T>& g, int64_t begin, int64_t end, int64_t p0, int64_t length, T* dst) {
  const GemmOps<T>& ops = gemm_ops<T>();
  for (int64_t j = begin; j < end; j += ops.panel_width) {
    const int64_t columns = std::min<int64_t>(end - j, ops.panel_width);
    const int64_t step = columns > ops.lanes ? ops.panel_width : ops.lanes;
    ops.pack(g.b + p0 * g.b_rs + j * g.b_cs, g.b_cs, g.b_rs, columns, length, step, dst + (j - begin) * length);
  }
}

/// Returns the number of elements of the packed operands, for chunks of `length` in total.
inline int64_t packed_a_size(const RowBlocks& blocks, int64_t length, int64_t chunks = 1) {
  return blocks.rows * length + blocks.count * chunks * kPackSlack;
}
template <class T>
int64_t packed_b_size(int64_t columns, int64_t length) {
  const int64_t width = gemm_ops<T>().panel_width;
  return (columns + width - 1) / width * width * length;
}

/// Requires m, n, k >= 1.
template <class T>
void gemm_packed(const GemmArgs<T>& args) {
  constexpr int64_t max_rows = 192, max_columns = 256;
  const GemmOps<T>& ops = gemm_ops<T>();
  const KChunks<T> chunks(args.k);
  const RowBlocks blocks(args.m, ops.max_height);
  const int64_t group = std::max<int64_t>(1, max_rows / ops.max_height);
  T* a = scratch<T>(Slot::gemm_a, packed_a_size(blocks, chunks.longest()));
  T* b = scratch<T>(Slot::gemm_b, packed_b_size<T>(args.n, chunks.longest()));
  for (int64_t item = 0; item < args.batch; ++item) {
    GemmArgs<T> g = args;
    g.a += item * g.a_bs;
    g.b += item * g.b_bs;
    g.c += item * g.c_bs;
    for (int64_t chunk = 0; chunk < chunks.count; ++chunk) {
      const int64_t p0 = chunks.start(chunk), length = chunks.size(chunk);
      pack_a(g, blocks, 0, blocks.count, p0, length, a);
      for (int64_t j = 0; j < g.n; j += max_columns) {
        const int64_t j1 = std::min(j + max_columns, g.n);
        pack_b(g, j, j1, p0, length, b);
        for (int64_t i = 0; i < blocks.count; i += group) {
          ops.block({&blocks, i, std::min(i + group, blocks.count), j, j1, length,
                     a + packed_a_offset(blocks, 0, i, length), 0, 0, b, 0, g.c, g.c_rs, g.alpha,
                     chunk == 0 ? g.beta : T(1), chunk == 0 ? g.bias_n : nullptr});
        }
      }
    }
  }
}

}  // namespace levin::kernels::cpu
