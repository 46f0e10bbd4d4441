#pragma once
// Shared by the tensor-core rungs: tiles in shared memory, fragments in registers, and stores of the sums.

#include "kernels/cuda/base/ptx.h"
#include "kernels/cuda/matmul/epilogue.cuh"

namespace levin::kernels::cuda {

/// The index along which an operand's elements are neighbours: k, or its lines (rows of A, columns of B).
enum class Layout { along_k, along_lines };

/// A tile of an operand in shared memory, in the operand's own order: Lines rows of Depth elements for along_k, else
/// Depth rows of Lines. Rows are a multiple of 128 bytes. `Swizzled`: the eight 16-byte chunks of 128 bytes are
/// permuted by the row, chunk ^= row % 8, so that the eight rows of an 8 x 8 matrix lie in different banks.
template <class T, Layout layout, int Lines, int Depth, bool Swizzled>
struct HalfTile {
  static constexpr Layout kLayout = layout;
  static constexpr int kLines = Lines, kDepth = Depth;
  static constexpr int kRows = layout == Layout::along_k ? Lines : Depth;
  static constexpr int kColumns = layout == Layout::along_k ? Depth : Lines;
  static constexpr int kElements = Lines * Depth;
  static constexpr int kPitch = kColumns;  ///< distance of rows
  static_assert(kColumns % 64 == 0);

  /// Returns the offset of the chunk that begins at (row, column).
  __device__ static int at(int row, int column) {
    const unsigned r = row, chunk = column / 8u;  // unsigned, so that the divisions are single instructions
    return static_cast<int>(r * kColumns + (Swizzled ? chunk ^ r % 8 : chunk) * 8);
  }

  /// Returns at(row, column + 16 * s) from at(row, column), where column is 0 or 8: all steps share the row's address.
  __device__ static int moved(int offset, int s) { return Swizzled ? offset ^ s * 16 : offset + s * 16; }

  /// Loads the fragment of A for lines [line, line + 16) and steps [step, step + 16), where 16 divides step.
  __device__ static void load_a(std::uint32_t (&r)[4], const T* tile, int line, int step) {
    const int lane = ptx::lane_id();
    if constexpr (layout == Layout::along_k) {
      ptx::ldmatrix_x4(r, tile + moved(at(line + lane % 16, lane / 16 * 8), step / 16));
    } else {
      ptx::ldmatrix_x4_trans(r, tile + at(step + lane % 8 + lane / 16 * 8, line + lane / 8 % 2 * 8));
    }
  }
  /// Loads the fragments of B for lines [line, line + 8) to r[0], r[1] and [line + 8, line + 16) to r[2], r[3].
  __device__ static void load_b(std::uint32_t (&r)[4], const T* tile, int line, int step) {
    const int lane = ptx::lane_id();
    if constexpr (layout == Layout::along_k) {
      ptx::ldmatrix_x4(r, tile + moved(at(line + lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8), step / 16));
    } else {
      ptx::ldmatrix_x4_trans(r, tile + at(step + lane % 16, line + lane / 16 * 8));
    }
  }
};

/// The geometry of a rung: the block's tile, divided into warp tiles of WarpM x WarpN.
template <class T_, Layout layout_a, Layout layout_b, int M, int N, int Depth, int WarpM, int WarpN, bool Swizzled>
struct HalfTiles {
  using T = T_;
  using A = HalfTile<T, layout_a, M, Depth, Swizzled>;
  using B = HalfTile<T, layout_b, N, Depth, Swizzled>;
  static constexpr int kM = M, kN = N, kDepth = Depth, kWarpM = WarpM, kWarpN = WarpN;
  static constexpr int kThreads = M / WarpM * (N / WarpN) * 32;
  static constexpr int kStage = A::kElements + B::kElements;  // elements of both tiles
  static constexpr int kSteps = Depth / 16;
};

/// A thread's part in copying an operand's tiles, 16 bytes at once, from memory aligned to 16 bytes.
template <class Tile, int Threads, class T>
struct HalfCopy {
  static constexpr int kChunksAcross = Tile::kColumns / 8, kRowsAtOnce = Threads / kChunksAcross;
  static constexpr int kCopies = Tile::kRows / kRowsAtOnce;
  static constexpr bool kAlongK = Tile::kLayout == Layout::along_k;
  static_assert(Threads % kChunksAcross == 0 && Tile::kRows % kRowsAtOnce == 0);
  static_assert(kRowsAtOnce % 8 == 0);  // all of a thread's chunks are permuted alike

  const T* from;   ///< this thread's first chunk of the next tile
  int lines_left;  ///< lines left in the operand from that chunk's line on

  HalfCopy() = default;
  __device__ HalfCopy(const Operand<T>& x, std::int64_t batch, int line, std::int64_t lines, int k = 0) {
    from = x.of(batch) + ((kAlongK ? line : k) + row()) * pitch(x) + (kAlongK ? k : line) + column();
    lines_left = static_cast<int>(lines) - line - (kAlongK ? row() : column());
  }

  /// Copies the next Depth steps, of which `steps_left` exist; the rest are zeros. Asynchronous or through registers.
  template <bool Async>
  __device__ void copy(T* tile, const Operand<T>& x, int steps_left) {
    steps_left -= kAlongK ? column() : row();
    const int rows_left = kAlongK ? lines_left : steps_left, columns_left = kAlongK ? steps_left : lines_left;
    const T* source = from;
    T* to = tile + Tile::at(row(), column());
    // All inside: a few instructions. Not `across == 8`: ptxas 13.0 then branches on a clamped minimum's second bit.
    if (Async && columns_left >= 8 && (kCopies - 1) * kRowsAtOnce < rows_left) {
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kCopies; ++i) {
        ptx::cp_async16(to + i * kRowsAtOnce * Tile::kPitch, source);
        source += kRowsAtOnce * pitch(x);
      }
    } else {
      const int across = columns_left < 0 ? 0 : columns_left < 8 ? columns_left : 8;
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kCopies; ++i) {
        const int inside = i * kRowsAtOnce < rows_left ? across : 0;
        if constexpr (Async) {
          ptx::cp_async16(to + i * kRowsAtOnce * Tile::kPitch, source, inside * 2);  // 0 bytes: reads nothing
        } else {
          pack_at<8>(to + i * kRowsAtOnce * Tile::kPitch) = load_eight(source, inside);
        }
        source += kRowsAtOnce * pitch(x);
      }
    }
    from += kAlongK ? Tile::kDepth : Tile::kDepth * pitch(x);
  }

 private:
  __device__ static int row() { return static_cast<int>(threadIdx.x) / kChunksAcross; }
  __device__ static int column() { return static_cast<int>(threadIdx.x) % kChunksAcross * 8; }
  __device__ static std::int64_t pitch(const Operand<T>& x) { return kAlongK ? x.line : x.step; }
  __device__ static Pack<T, 8> load_eight(const T* from, int inside) {
    if (inside == 8) return pack_at<8>(from);
    Pack<T, 8> v;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < 8; ++i) v[i] = i < inside ? from[i] : convert<T>(0);
    return v;
  }
};

/// The operands of one step of 16 in registers.
template <class Tiles>
struct Fragments {
  static constexpr int kRowTiles = Tiles::kWarpM / 16, kColumnPairs = Tiles::kWarpN / 16;
  std::uint32_t a[kRowTiles][4], b[kColumnPairs][4];

  __device__ void load(const typename Tiles::T* stage, int row, int column, int step) {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kRowTiles; ++i) Tiles::A::load_a(a[i], stage, row + i * 16, step);
    LEVIN_PRAGMA_UNROLL
    for (int j = 0; j < kColumnPairs; ++j) Tiles::B::load_b(b[j], stage + Tiles::A::kElements, column + j * 16, step);
  }
};

/// A warp's position in the block's tile, and its sums.
template <class Tiles>
struct WarpSums {
  using T = typename Tiles::T;
  static constexpr int kRowTiles = Tiles::kWarpM / 16, kColumnTiles = Tiles::kWarpN / 8;
  int row, column;
  float sums[kRowTiles][kColumnTiles][4] = {};

  __device__ WarpSums() {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    row = warp / (Tiles::kN / Tiles::kWarpN) * Tiles::kWarpM;
    column = warp % (Tiles::kN / Tiles::kWarpN) * Tiles::kWarpN;
  }

  __device__ void multiply(const Fragments<Tiles>& f) {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kRowTiles; ++i) {
      LEVIN_PRAGMA_UNROLL
      for (int j = 0; j < kColumnTiles; ++j) {
        const std::uint32_t b[2] = {f.b[j / 2][j % 2 * 2], f.b[j / 2][j % 2 * 2 + 1]};
        ptx::mma_m16n8k16<T>(sums[i][j], f.a[i], b, sums[i][j]);
      }
    }
  }

  __device__ void clear() {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kRowTiles; ++i) {
      LEVIN_PRAGMA_UNROLL
      for (int j = 0; j < kColumnTiles; ++j) {
        LEVIN_PRAGMA_UNROLL
        for (int r = 0; r < 4; ++r) sums[i][j][r] = 0;
      }
    }
  }

  /// Multiplies all steps of a tile, or those that hold the first `steps` of k.
  __device__ void multiply(const T* stage, int steps = Tiles::kDepth) {
    LEVIN_PRAGMA_UNROLL
    for (int s = 0; s < Tiles::kSteps; ++s) {
      if (s * 16 >= steps) break;
      Fragments<Tiles> f;
      f.load(stage, row, column, s * 16);
      multiply(f);
    }
  }

  template <class Out>
  __device__ void write(const Out& out, const TilePlace& place) const {
    const int g = ptx::lane_id() / 4, t = ptx::lane_id() % 4;
    const int first_row = place.row * Tiles::kM + row + g;
    const int first_column = place.column * Tiles::kN + column + 2 * t;
    LEVIN_PRAGMA_UNROLL
    for (int j = 0; j < kColumnTiles; ++j) {
      const auto columns = columns_of<2>(out, place, first_column + j * 8);
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kRowTiles; ++i) {
        LEVIN_PRAGMA_UNROLL
        for (int half = 0; half < 2; ++half) {
          const float two[2] = {sums[i][j][2 * half], sums[i][j][2 * half + 1]};
          columns.write(first_row + i * 16 + half * 8, two);
        }
      }
    }
  }
};

/// Calls f.template operator()<layout of A, layout of B>() for operands that are vector_ready().
template <class T, class F>
void with_layouts(const Problem<T>& p, F&& f) {
  const bool a = p.a.step == 1, b = p.b.step == 1;
  if (a && b) return f.template operator()<Layout::along_k, Layout::along_k>();
  if (a) return f.template operator()<Layout::along_k, Layout::along_lines>();
  if (b) return f.template operator()<Layout::along_lines, Layout::along_k>();
  return f.template operator()<Layout::along_lines, Layout::along_lines>();
}

}  // namespace levin::kernels::cuda
