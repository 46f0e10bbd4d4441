// Tiles for few rows of C, whose time is that of reading B: B is read in place, once. If B's rows are contiguous, each
// element of C is the same chain of multiply-adds along k as in gemm_tile, so results have the same bits. If its
// columns are, the lanes of a vector are neighbours along k, and their sums are added last.
#include "kernels/cpu/gemm/lane_sums-inl.h"
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
/// The most rows of a tile of dot products; fewer for doubles, which keeps programs small.
template <class T>
inline constexpr int kColumnsHeight = sizeof(T) == 4 ? 8 : 4;

/// Vectors of a wide tile: enough for runs of B that the hardware prefetches, and few enough for the registers.
constexpr int wide_vectors(int rows) {
  constexpr int registers = kTileHeight > 6 ? 24 : 12, longest_run = 8;
  return registers / rows < longest_run ? registers / rows : longest_run;
}

/// Columns of a tile of dot products: its sums fill a vector.
template <class T>
constexpr int dot_columns(int rows) {
  const int lanes = static_cast<int>(kLanes<T>);
  return rows < lanes ? lanes / rows : 1;
}

/// Stores out.tail of the `columns` sums (rows, columns) of each row.
template <class T>
HWY_NOINLINE void store_sums(const T* sums, int64_t rows, int64_t columns, const TileOut<T>& out) {
  for (int64_t i = 0; i < rows; ++i) {
    T* c = out.c + i * out.c_rs;
    for (int64_t j = 0; j < out.tail; ++j) {
      const T value = out.alpha * sums[i * columns + j] + (out.bias ? out.bias[j] : T(0));
      c[j] = out.beta == T(0) ? value : out.beta * c[j] + value;
    }
  }
}

/// Computes MR rows by out.tail columns of C as dot products: rows of A (MR, k), a_step apart, and columns of B, b_step
/// apart, are contiguous along k. `far`: B comes from memory and is worth prefetching.
template <int MR, class T>
HWY_NOINLINE void gemm_tile_dot(int64_t k, const T* HWY_RESTRICT a, int64_t a_step, const T* HWY_RESTRICT b,
                                int64_t b_step, bool far, const TileOut<T>& out) {
  const Simd<T> d;
  constexpr int lanes = static_cast<int>(kLanes<T>), columns = dot_columns<T>(MR);
  constexpr int groups = (MR * columns + lanes - 1) / lanes;
  constexpr int64_t ahead = 512 / sizeof(T);
  const T* lines[columns];  // those beyond the last column repeat the first one
  for (int j = 0; j < columns; ++j) lines[j] = b + (j < out.tail ? j : 0) * b_step;
  SimdVec<T> acc[groups * lanes];  // (MR, columns)
  HWY_UNROLL(16)
  for (int i = 0; i < groups * lanes; ++i) acc[i] = hn::Zero(d);
  const auto multiply = [&](int64_t p, const auto& load) HWY_ATTR {
    SimdVec<T> row[MR];
    HWY_UNROLL(8)
    for (int i = 0; i < MR; ++i) row[i] = load(a + i * a_step + p);
    HWY_UNROLL(16)
    for (int j = 0; j < columns; ++j) {
      const auto column = load(lines[j] + p);
      HWY_UNROLL(8)
      for (int i = 0; i < MR; ++i) acc[i * columns + j] = hn::MulAdd(row[i], column, acc[i * columns + j]);
    }
  };
  int64_t p = 0;
  for (; p + lanes <= k; p += lanes) {
    if (far) {
      for (int j = 0; j < columns; ++j) hwy::Prefetch(lines[j] + p + ahead);
    }
    multiply(p, [&](const T* from) HWY_ATTR { return hn::LoadU(d, from); });
  }
  if (p < k) multiply(p, [&](const T* from) HWY_ATTR { return load_part(from, k - p); });
  HWY_ALIGN T sums[groups * lanes];  // (MR, columns)
  HWY_UNROLL(4)
  for (int g = 0; g < groups; ++g) hn::Store(lane_sums<T>(acc + g * lanes), d, sums + g * lanes);
  store_sums(sums, MR, columns, out);
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
struct DotTile {
  int64_t columns;
  void (*run)(int64_t, const T*, int64_t, const T*, int64_t, bool, const TileOut<T>&);
};

template <class T, int... I>
const DotTile<T>& dot_tile(int64_t height, std::integer_sequence<int, I...>) {
  static constexpr DotTile<T> tiles[] = {{dot_columns<T>(I + 1), &gemm_tile_dot<I + 1, T>}...};
  return tiles[height - 1];
}

/// B's columns are contiguous.
template <class T>
void run_columns(const FewRowsArgs<T>& g) {
  const DotTile<T>& tile = dot_tile<T>(g.m, std::make_integer_sequence<int, kColumnsHeight<T>>{});
  for (int64_t j = 0; j < g.n; j += tile.columns) {
    const int64_t columns = g.n - j < tile.columns ? g.n - j : tile.columns;
    tile.run(g.k, g.a, g.a_step, g.b + j * g.b_step, g.b_step, g.far,
             {g.c + j, g.c_rs, g.alpha, g.beta, g.bias ? g.bias + j : nullptr, columns});
  }
}

template <class T>
void run_few_rows(const FewRowsArgs<T>& g) {
  g.by_column ? run_columns(g) : run_wide(g);
}

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
