#pragma once
// How C is cut into tiles, one per block, and K into parts if there are too few tiles to fill the device.

#include "kernels/cuda/matmul/problem.cuh"

#include <algorithm>

namespace levin::kernels::cuda {

struct TilePlace {
  std::int64_t batch;
  int split;        ///< part of K
  int row, column;  ///< in units of tiles
};

/// N neighbouring columns of a tile, to which an epilogue stores one row after the other. An epilogue that computes the
/// addresses of its columns has a member type Columns<N> instead.
template <int N, class Out>
struct TileColumns {
  const Out& out;
  const TilePlace& place;
  int column;

  template <class Sum>
  __device__ void write(int row, const Sum (&sums)[N]) const {
    out.write(place, row, column, sums);
  }
};
template <int N, class Out>
__device__ auto columns_of(const Out& out, const TilePlace& place, int column) {
  if constexpr (requires { typename Out::template Columns<N>; }) {
    return typename Out::template Columns<N>(out, place, column);
  } else {
    return TileColumns<N, Out>{out, place, column};
  }
}

/// The numbered tiles of a batch of products. `group` rows of tiles are traversed together, column by column, so that
/// blocks that run at the same time share rows of A and columns of B in L2; 1 traverses row by row.
struct TileGrid {
  int rows = 0, columns = 0;
  int splits = 1;
  std::int64_t batch = 1;
  std::int64_t k_part = 0;  ///< length of a part of K
  int group = 1;

  __host__ __device__ std::int64_t count() const { return static_cast<std::int64_t>(rows) * columns * splits * batch; }
  __device__ TilePlace at(std::int64_t index) const {
    const std::int64_t tiles = static_cast<std::int64_t>(rows) * columns;
    const std::int64_t item = index / tiles;
    const int tile = static_cast<int>(index % tiles);
    const int first = tile / (group * columns) * group;
    const int high = rows - first < group ? rows - first : group;
    const int inside = tile % (group * columns);
    return {item / splits, static_cast<int>(item % splits), first + inside % high, inside / high};
  }
};

/// Returns the number of parts of K: a function of the shape alone, so that results are the same on every device.
inline int split_count(std::int64_t tiles, std::int64_t k, int tile_k) {
  constexpr std::int64_t wanted = 128, most = 32, shortest = 4;
  if (tiles == 0 || tiles * 2 > wanted) return 1;
  const std::int64_t parts = std::min({wanted / tiles, most, k / (shortest * tile_k)});
  return static_cast<int>(std::max<std::int64_t>(1, parts));
}

/// `split` allows splitting K.
inline TileGrid tile_grid(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, int tile_m, int tile_n,
                          int tile_k, bool split = false) {
  TileGrid g;
  g.rows = static_cast<int>(ceil_div(m, tile_m));
  g.columns = static_cast<int>(ceil_div(n, tile_n));
  g.batch = batch;
  const int parts = split ? split_count(g.count(), k, tile_k) : 1;
  g.k_part = ceil_div(ceil_div(k, parts), tile_k) * tile_k;
  g.splits = g.k_part == 0 ? 1 : static_cast<int>(std::max<std::int64_t>(1, ceil_div(k, g.k_part)));
  return g;
}

/// True if one launch can have this many tiles, and kernels may count m, n and k in 32 bits.
inline bool fits_launch(const TileGrid& g, std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t most = 0x7fff0000;
  return g.count() <= most && m <= most && n <= most && k <= most;
}

}  // namespace levin::kernels::cuda
