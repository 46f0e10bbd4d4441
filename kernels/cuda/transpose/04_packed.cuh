#pragma once
// Rung 4: packs, transposed in registers.
// Idea: a thread reads P packs of P elements below one another, transposes that square in its registers and so writes
// packs to shared memory as well as out of it. Changes against rung 3: P times fewer instructions and P times longer
// lines, which for 2-byte elements makes whole lines of 128 bytes. Needs sizes, strides and addresses that are
// multiples of packs. Bound: global memory.

#include "kernels/cuda/transpose/problem.cuh"

namespace levin::kernels::cuda {

/// Elements per pack: 4 bytes of small types, 8 of others.
template <class T>
inline constexpr int kTransposePack = sizeof(T) < 4 ? 4 / static_cast<int>(sizeof(T)) : 8 / static_cast<int>(sizeof(T));

/// Tiles of 32 packs in both directions; 256 threads.
template <class T>
__global__ void __launch_bounds__(256) transpose_packed(TransposeProblem p) {
  constexpr int P = kTransposePack<T>;
  using Word = Pack<T, P>;
  LEVIN_SHARED(Word, buffer, P, 32, 33);  // (column in its pack, pack of columns, pack of rows)
  const TransposePlace tile = find_tile(p, 32 * P);
  T* out = static_cast<T*>(p.out) + tile.out;
  const T* in = static_cast<const T*>(p.in) + tile.in;
  const int lane = static_cast<int>(threadIdx.x) % 32, first = static_cast<int>(threadIdx.x) / 32;
  LEVIN_PRAGMA_UNROLL
  for (int group = first; group < 32; group += 8) {
    const std::int64_t row = tile.row + group * P, column = tile.column + lane * P;
    if (row >= p.rows || column >= p.columns) continue;
    Word square[P];
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < P; ++i) square[i] = vector_at<Word>(in + (row + i) * p.in_pitch + column);
    LEVIN_PRAGMA_UNROLL
    for (int j = 0; j < P; ++j) {
      Word turned;
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < P; ++i) turned[i] = square[i][j];
      buffer[j][lane][group] = turned;
    }
  }
  __syncthreads();
  LEVIN_PRAGMA_UNROLL
  for (int group = first; group < 32; group += 8) {
    const std::int64_t row = tile.row + lane * P, column = tile.column + group * P;
    if (row >= p.rows || column >= p.columns) continue;
    LEVIN_PRAGMA_UNROLL
    for (int j = 0; j < P; ++j) vector_at<Word>(out + (column + j) * p.out_pitch + row) = buffer[j][group][lane];
  }
}

template <class T>
bool can_transpose_packed(const TransposeProblem& p) {
  constexpr int P = kTransposePack<T>;
  const auto whole = [](std::int64_t n) { return n % P == 0; };
  const auto aligned = [](const void* q) { return reinterpret_cast<std::uintptr_t>(q) % (P * sizeof(T)) == 0; };
  bool can = P > 1 && whole(p.rows) && whole(p.columns) && whole(p.out_pitch) && whole(p.in_pitch) && aligned(p.out) &&
             aligned(p.in);
  for (int d = 0; d < p.dims; ++d) can = can && whole(p.strides[0][d]) && whole(p.strides[1][d]);
  return can;
}

template <class T>
void run_transpose_packed(TransposeProblem p, const Stream& stream) {
  const auto tiles = static_cast<unsigned>(p.cut(32 * kTransposePack<T>));
  launch(transpose_packed<T>, {.grid = tiles, .block = 256, .stream = stream}, p);
}

}  // namespace levin::kernels::cuda
