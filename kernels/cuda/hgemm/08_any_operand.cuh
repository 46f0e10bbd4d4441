#pragma once
// Beside the ladder: tensor cores for operands that 16-byte copies cannot move: rows that begin at any address,
// matrices without a stride of 1, and the windows of a convolution (implicit GEMM). Idea: a thread collects eight
// elements from any addresses in registers while the tensor cores work on the previous tile, and stores them to shared
// memory as one chunk of 16 bytes. Changes against rung 7: single loads, for which the reader computes each address.
// Bound: these loads and addresses.

#include "kernels/cuda/hgemm/tile.cuh"
#include "kernels/cuda/matmul/operands.cuh"

namespace levin::kernels::cuda {

/// A thread's part in collecting an operand's tiles.
template <class Source, class Tile, int Threads>
struct GatherTile {
  using T = typename Source::Element;
  using Reader = typename Source::Reader;
  static constexpr bool kAlongK = Source::kAccess == Access::along_k;
  static constexpr int kLines = Tile::kLines, kDepth = Tile::kDepth, kAcross = kDepth / 8;
  static constexpr int kChunks = kLines * kAcross / Threads, kOwnLines = kAlongK ? kChunks : 1;
  static_assert(Threads % kLines == 0 && Threads % kAcross == 0 && Tile::kLayout == Layout::along_k);

  Reader reader;
  typename Reader::Line own[kOwnLines];
  Pack<T, 8> held[kChunks];

  __device__ GatherTile(const Source& source, std::int64_t batch, int first) : reader(source.reader(batch)) {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kOwnLines; ++i) own[i] = reader.line(first + line_of(i));
  }
  /// Returns the line of this thread's chunk i: neighbouring threads run along k or along the lines.
  __device__ static int line_of(int i) {
    const int thread = static_cast<int>(threadIdx.x);
    return kAlongK ? thread / kAcross + i * (Threads / kAcross) : thread % kLines;
  }
  __device__ static int step_of(int i) {
    const int thread = static_cast<int>(threadIdx.x);
    return kAlongK ? thread % kAcross * 8 : (thread / kLines + i * (Threads / kLines)) * 8;
  }

  /// Loads steps [k, k + Depth), of which those below k_end exist.
  __device__ void fetch(int k, int k_end) {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kChunks; ++i) {
      const int first = k + step_of(i), inside = k_end - first;
      const typename Reader::Line line = own[kAlongK ? i : 0];
      auto step = reader.step(first);
      const T* from = reader.at(line, step);
      if (reader.contiguous() && inside >= 8 && from && reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
        held[i] = pack_at<8>(from);
        continue;
      }
      LEVIN_PRAGMA_UNROLL
      for (int e = 0; e < 8; ++e) {
        const T* element = e < inside ? reader.at(line, step) : nullptr;
        held[i][e] = element ? *element : convert<T>(0);
        reader.next(step);
      }
    }
  }

  __device__ void put(T* tile) const {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kChunks; ++i) pack_at<8>(tile + Tile::at(line_of(i), step_of(i))) = held[i];
  }
};

template <class T>
using GatherTiles = HalfTiles<T, Layout::along_k, Layout::along_k, 64, 64, 64, 32, 32, true>;  // 128 threads

/// The product is (m, n) with sums of length k.
template <class Tiles, class A, class B, class Out>
__global__ void __launch_bounds__(Tiles::kThreads, 2)
    hgemm_any_operand(A a_source, B b_source, Out out, TileGrid grid, int m, int n, int k_size) {
  using T = typename Tiles::T;
  T* shared = dynamic_shared<T>();  // two stages of A's tile, then B's
  const TilePlace place = grid.at(blockIdx.x);
  const int row = place.row * Tiles::kM, column = place.column * Tiles::kN;
  const int k_part = static_cast<int>(grid.k_part), k_begin = place.split * k_part;
  const int k_end = k_size - k_begin < k_part ? k_size : k_begin + k_part;
  GatherTile<A, typename Tiles::A, Tiles::kThreads> a(a_source, place.batch, row);
  GatherTile<B, typename Tiles::B, Tiles::kThreads> b(b_source, place.batch, column);
  WarpSums<Tiles> warp;
  const bool working = row + warp.row < m && column + warp.column < n;

  if (k_begin < k_end) a.fetch(k_begin, k_end), b.fetch(k_begin, k_end);
  T* stage = shared;
  for (int k = k_begin; k < k_end; k += Tiles::kDepth) {
    a.put(stage);
    b.put(stage + Tiles::A::kElements);
    __syncthreads();  // with two stages one barrier suffices: a thread that passes it has read the stage before
    if (k + Tiles::kDepth < k_end) a.fetch(k + Tiles::kDepth, k_end), b.fetch(k + Tiles::kDepth, k_end);
    if (working) warp.multiply(stage, k_end - k);
    stage = stage == shared ? shared + Tiles::kStage : shared;
  }
  warp.write(out, place);
}

template <class T, class A, class B, class Out>
void launch_hgemm_any_operand(const A& a, const B& b, const Out& out, const TileGrid& grid, std::int64_t m,
                              std::int64_t n, std::int64_t k, const Stream& stream) {
  using Tiles = GatherTiles<T>;
  launch(hgemm_any_operand<Tiles, A, B, Out>,
         {.grid = static_cast<unsigned>(grid.count()),
          .block = Tiles::kThreads,
          .shared = 2 * sizeof(T) * Tiles::kStage,
          .stream = stream},
         a, b, out, grid, m, n, k);
}

}  // namespace levin::kernels::cuda
