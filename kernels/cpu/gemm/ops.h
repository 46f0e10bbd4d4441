#pragma once
// The interface between an instruction set and the drivers: tile sizes and functions. Drivers are plain C++ and
// compiled once; only these functions are compiled for each target.

#include <cstdint>

namespace levin::kernels::cpu {

using std::int64_t;

/// Splits rows of A into blocks of nearly equal height (13 + 13 + 12 rather than 14 + 14 + 10), none above
/// `max_height`.
struct RowBlocks {
  int64_t rows, count, height, taller;  // `taller` blocks have height + 1 rows, the others `height`

  RowBlocks(int64_t rows_, int64_t max_height)
      : rows(rows_), count((rows_ + max_height - 1) / max_height), height(rows_ / count), taller(rows_ % count) {}
  int64_t start(int64_t block) const { return block * height + (block < taller ? block : taller); }
  int64_t size(int64_t block) const { return height + (block < taller ? 1 : 0); }
};

/// Number of spare elements at the end of a packed row block: the packing writes whole vectors.
inline constexpr int64_t kPackSlack = 16;

/// Returns the offset of row block `to` of packed A from row block `from`; blocks are (k, size(block)).
inline int64_t packed_a_offset(const RowBlocks& blocks, int64_t from, int64_t to, int64_t k) {
  return (blocks.start(to) - blocks.start(from)) * k + (to - from) * kPackSlack;
}

/// Computes C[rows, columns] (+)= A B over one range of k, with operands packed or read in place.
template <class T>
struct BlockArgs {
  const RowBlocks* blocks;
  int64_t block_begin, block_end;  // row blocks to compute
  int64_t n_begin, n_end;          // columns to compute
  int64_t k;
  const T* a;          // at row block `block_begin`; packed: see packed_a_offset
  int64_t a_step;      // in place (0 when packed): stride along k, with unit stride between rows
  int64_t a_row_step;  // in place the other way (else 0): stride between rows, with unit stride along k
  const T* b;      // at column n_begin; packed: the panel of column n_begin + j starts at b + j * k, (k, panel width)
  int64_t b_step;  // in place (0 when packed): stride along k, with unit stride between columns
  T* c;            // (m, n) at row 0, column 0
  int64_t c_rs;
  T alpha, beta;
  const T* bias;  // (n) or null
};

/// Computes C (+)= A B over one range of k for few rows, with B in place.
template <class T>
struct FewRowsArgs {
  int64_t m = 0, n = 0, k = 0;  // m <= GemmOps::wide_height, or columns_height if by_column
  const T* a = nullptr;         // (k, m), rows a_step apart; (m, k) if by_column
  int64_t a_step = 0;
  const T* b = nullptr;    // (k, n), rows b_step apart with adjacent elements; columns so if by_column
  int64_t b_step = 0;
  bool by_column = false;
  bool far = false;  // B comes from memory rather than from a cache
  T* c = nullptr;    // (m, n)
  int64_t c_rs = 0;
  T alpha = T(1), beta = T(0);
  const T* bias = nullptr;  // (n) or null
};

/// Bits of magnitudes of floats: of the least that is not zero, less one, and of the largest.
struct Magnitudes {
  std::uint32_t least = ~0U, most = 0;
};

/// Splits rows of A or columns of B into strips of bfloat16 parts (amx.h).
struct SplitArgs {
  bool of_a;
  const float* src;            // element (i, p): row i of A or column i of B, and term p of the sum
  int64_t i_stride, p_stride;
  int64_t count, k;
  std::uint16_t* dst;
  int64_t strip;     // distance between strips
  Magnitudes* seen;  // extended by the operand's
};

/// Returns whether Intel made this processor.
bool is_intel();

template <class T>
struct GemmOps {
  int lanes;        // vector width
  int max_height;   // rows of the register tile
  int panel_width;  // columns of the register tile: two vectors (the last panel may be one vector wide)
  int wide_height, columns_height;  // rows that few_rows takes at most

  /// True if vectors have 64 bytes, as with AVX-512.
  bool wide_vectors() const { return lanes * static_cast<int>(sizeof(T)) >= 64; }
  /// True for 64-byte vectors on Intel's processors, where many reads in place cost more time than packing, even of
  /// near operands: the tile reaches 0.86 of the peak in place and 0.96 packed (Xeon).
  bool slow_in_place() const { return wide_vectors() && is_intel(); }
  /// True for 64-byte vectors on other processors, where packing costs more time than reads in place, even of far
  /// operands if they are spread over the sets of the caches: the tile reaches 0.96 of the peak in both ways (Zen 5).
  bool fast_in_place() const { return wide_vectors() && !is_intel(); }

  /// Copies dst[p * step + i] = src[i * i_stride + p * p_stride] for i < count, p < k. May write up to kPackSlack
  /// elements past the end when count == step; lanes in [count, step) get zero or arbitrary values of src, finite or
  /// not.
  void (*pack)(const T* src, int64_t i_stride, int64_t p_stride, int64_t count, int64_t k, int64_t step, T* dst);
  /// Packs `blocks` adjacent row blocks of one height, whose rows are adjacent elements p_stride apart along k, as
  /// `pack` does: block b begins at dst + b * block_step. Reads up to kPackSlack elements from the last block's
  /// first on. Null for doubles.
  void (*pack_lines)(const T* src, int64_t p_stride, int64_t height, int64_t blocks, int64_t block_step, int64_t k,
                     T* dst) = nullptr;
  void (*block)(const BlockArgs<T>& args);
  /// Null for doubles.
  void (*split)(const SplitArgs& args) = nullptr;
  void (*few_rows)(const FewRowsArgs<T>& args);
};

template <class T>
const GemmOps<T>& gemm_ops();
template <>
const GemmOps<float>& gemm_ops<float>();
template <>
const GemmOps<double>& gemm_ops<double>();

}  // namespace levin::kernels::cpu
