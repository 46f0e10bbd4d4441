// Tiles for few rows of C, whose time is that of reading B: B is read in place, once. Each element of C is the same
// chain of multiply-adds along k as in gemm_tile, so results have the same bits.
#include "kernels/cpu/gemm/square-inl.h"
#include "kernels/cpu/gemm/tile-inl.h"

#if defined(LEVIN_KERNELS_CPU_GEMM_FEW_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVIN_KERNELS_CPU_GEMM_FEW_ROWS_INL_H
#undef LEVIN_KERNELS_CPU_GEMM_FEW_ROWS_INL_H
#else
#define LEVIN_KERNELS_CPU_GEMM_FEW_ROWS_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

inline constexpr int kWideHeight = 4;
#if HWY_TARGET <= HWY_AVX3
inline constexpr int kColumnsHeight = 8;
#else
inline constexpr int kColumnsHeight = 4;
#endif

/// Vectors of a wide tile: enough for runs of B that the hardware prefetches, and few enough for the registers.
constexpr int wide_vectors(int rows) {
  constexpr int registers = kTileHeight > 6 ? 24 : 12, longest_run = 8;
  return registers / rows < longest_run ? registers / rows : longest_run;
}

/// Writes the transposed square of which only `count` elements of each line exist: out (lanes, lanes).
template <class T>
HWY_NOINLINE void part_of_square(const T* const* lines, int64_t p, int64_t count, T* HWY_RESTRICT out) {
  const Simd<T> d;
  constexpr int lanes = static_cast<int>(kLanes<T>);
  HWY_ALIGN T copy[lanes * lanes];
  const T* copied[lanes];
  for (int j = 0; j < lanes; ++j) {
    copied[j] = copy + j * lanes;
    hn::Store(load_part(lines[j] + p, count), d, copy + j * lanes);
  }
  SimdVec<T> column[lanes];
  transpose_square(copied, 0, column);
  for (int q = 0; q < lanes; ++q) hn::Store(column[q], d, out + q * lanes);
}

/// Multiplies with B's columns b_step apart and elements along k adjacent: b[j * b_step + p]. Squares of B are
/// transposed in registers on their way to the multiply-adds. `far`: B comes from memory and is worth prefetching.
template <int MR, int NV, class T>
HWY_NOINLINE void gemm_tile_columns(int64_t k, const T* HWY_RESTRICT a, int64_t a_step, const T* HWY_RESTRICT b,
                                    int64_t b_step, bool far, const TileOut<T>& out) {
  const Simd<T> d;
  constexpr int lanes = static_cast<int>(kLanes<T>);
  constexpr int64_t ahead = 512 / sizeof(T);
  const T* lines[NV * lanes];  // those beyond the last column repeat the first one
  for (int j = 0; j < NV * lanes; ++j) lines[j] = b + (j < (NV - 1) * lanes + out.tail ? j : 0) * b_step;
  SimdVec<T> acc[MR][NV];
  HWY_UNROLL(16)
  for (int i = 0; i < MR; ++i) {
    HWY_UNROLL(2)
    for (int v = 0; v < NV; ++v) acc[i][v] = hn::Zero(d);
  }
  int64_t p = 0;
  for (; p + lanes <= k; p += lanes) {
    HWY_UNROLL(2)
    for (int v = 0; v < NV; ++v) {
      if (far) {
        for (int j = 0; j < lanes; ++j) hwy::Prefetch(lines[v * lanes + j] + p + ahead);
      }
      SimdVec<T> column[lanes];
      transpose_square(lines + v * lanes, p, column);
      HWY_UNROLL(16)
      for (int q = 0; q < lanes; ++q) {
        HWY_UNROLL(16)
        for (int i = 0; i < MR; ++i) acc[i][v] = hn::MulAdd(hn::Set(d, a[q * a_step + i]), column[q], acc[i][v]);
      }
    }
    a += lanes * a_step;
  }
  if (p < k) {
    HWY_ALIGN T columns[NV * lanes * lanes];
    for (int v = 0; v < NV; ++v) part_of_square(lines + v * lanes, p, k - p, columns + v * lanes * lanes);
    for (int64_t q = 0; q < k - p; ++q) {
      HWY_UNROLL(16)
      for (int i = 0; i < MR; ++i) {
        HWY_UNROLL(2)
        for (int v = 0; v < NV; ++v) {
          const auto column = hn::Load(d, columns + (v * lanes + q) * lanes);
          acc[i][v] = hn::MulAdd(hn::Set(d, a[q * a_step + i]), column, acc[i][v]);
        }
      }
    }
  }
  store_tile<MR, NV>(acc, out);
}

/// Multiplies as gemm_tile does, but reads only the out.tail elements of B's rows that exist.
template <int MR, class T>
HWY_NOINLINE void gemm_tile_ragged(int64_t k, const T* HWY_RESTRICT a, int64_t a_step, const T* HWY_RESTRICT b,
                                   int64_t b_step, const TileOut<T>& out) {
  const Simd<T> d;
  SimdVec<T> acc[MR][1];
  HWY_UNROLL(16)
  for (int i = 0; i < MR; ++i) acc[i][0] = hn::Zero(d);
  for (int64_t p = 0; p < k; ++p) {
    const auto row = load_part(b, out.tail);
    HWY_UNROLL(16)
    for (int i = 0; i < MR; ++i) acc[i][0] = hn::MulAdd(hn::Set(d, a[i]), row, acc[i][0]);
    a += a_step;
    b += b_step;
  }
  store_tile<MR, 1>(acc, out);
}

/// The tile functions of one height.
template <class T>
struct WideTiles {
  int64_t vectors;
  TileFn<T> wide, pair, single, ragged;
};

template <class T, int... I>
const WideTiles<T>& wide_tiles(int64_t height, std::integer_sequence<int, I...>) {
  static constexpr WideTiles<T> tiles[] = {{wide_vectors(I + 1), &gemm_tile<I + 1, wide_vectors(I + 1), T>,
                                            &gemm_tile<I + 1, 2, T>, &gemm_tile<I + 1, 1, T>,
                                            &gemm_tile_ragged<I + 1, T>}...};
  return tiles[height - 1];
}

/// B's rows are contiguous: the widest tile that fits, down to one vector or a part of one.
template <class T>
void run_wide(const FewRowsArgs<T>& g) {
  constexpr int64_t lanes = kLanes<T>;
  const WideTiles<T>& tiles = wide_tiles<T>(g.m, std::make_integer_sequence<int, kWideHeight>{});
  for (int64_t j = 0, columns = 0; j < g.n; j += columns) {
    const int64_t left = g.n - j;
    TileOut<T> out{g.c + j, g.c_rs, g.alpha, g.beta, g.bias ? g.bias + j : nullptr, lanes};
    TileFn<T> tile = tiles.wide;
    if (left >= tiles.vectors * lanes) {
      columns = tiles.vectors * lanes;
    } else if (left >= 2 * lanes) {
      columns = 2 * lanes;
      tile = tiles.pair;
    } else if (left >= lanes) {
      columns = lanes;
      tile = tiles.single;
    } else {
      columns = out.tail = left;
      tile = tiles.ragged;
    }
    tile(g.k, g.a, g.a_step, g.b + j, g.b_step, out);
  }
}

template <class T>
using ColumnsFn = void (*)(int64_t, const T*, int64_t, const T*, int64_t, bool, const TileOut<T>&);

template <class T, int... I>
ColumnsFn<T> columns_tile(int64_t height, std::integer_sequence<int, I...>) {
  static constexpr ColumnsFn<T> tiles[] = {&gemm_tile_columns<I + 1, 1, T>...};
  return tiles[height - 1];
}

/// B's columns are contiguous. A single row has one chain of multiply-adds for each vector, so that two vectors hide
/// their latency. They are too many where loads straddle lines of B that share few sets of the cache: each line is then
/// needed twice, and evicted in between.
template <class T>
void run_columns(const FewRowsArgs<T>& g) {
  constexpr int64_t lanes = kLanes<T>, size = sizeof(T);
  const bool straddles = reinterpret_cast<std::uintptr_t>(g.b) % 64 != 0 && g.b_step * size % 2048 == 0;
  const ColumnsFn<T> single = columns_tile<T>(g.m, std::make_integer_sequence<int, kColumnsHeight>{});
  for (int64_t j = 0, columns = 0; j < g.n; j += columns) {
    const bool pair = g.m == 1 && !straddles && g.n - j > lanes;
    const int64_t most = pair ? 2 * lanes : lanes;
    columns = g.n - j < most ? g.n - j : most;
    const TileOut<T> out{g.c + j, g.c_rs, g.alpha, g.beta, g.bias ? g.bias + j : nullptr, columns - (most - lanes)};
    (pair ? &gemm_tile_columns<1, 2, T> : single)(g.k, g.a, g.a_step, g.b + j * g.b_step, g.b_step, g.far, out);
  }
}

template <class T>
void run_few_rows(const FewRowsArgs<T>& g) {
  g.by_column ? run_columns(g) : run_wide(g);
}

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
