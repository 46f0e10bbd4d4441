#pragma once
// Kernels for lines that the ladder's rungs do not support: short ones, strided ones, and columns.

#include "kernels/cuda/reduce/04_shuffles.cuh"

namespace levin::kernels::cuda {

/// `lanes` neighbours, a power of two up to 32, reduce one line of any strides.
template <class Op, class T, class Acc>
__global__ void reduce_short(Op op, ReduceLines<T, Acc> lines, int lanes) {
  const std::int64_t output = global_thread() / lanes;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  Acc own = Op::template neutral<Acc>();
  if (output < lines.outputs) {
    const T* const x = lines.x + lines.kept.x_at(output);
    for (std::int64_t i = lane; i < lines.n; i += lanes) {
      own = op.combine(own, op.template map<Acc>(x[lines.reduced.x_at(i)]));
    }
  }
  for (int offset = lanes / 2; offset > 0; offset /= 2) {
    own = op.combine(own, __shfl_xor_sync(0xffffffffu, own, offset));
  }
  if (output < lines.outputs && lane == 0) lines.store(output, own);
}

/// One block reduces a piece of a line of any strides.
template <class Op, class T, class Acc>
__global__ void reduce_scattered(Op op, ReduceLines<T, Acc> lines) {
  const std::int64_t task = static_cast<std::int64_t>(blockIdx.x), first = lines.first_of(task);
  const std::int64_t n = lines.length_of(task);
  const T* const x = lines.x + lines.kept.x_at(lines.output_of(task));
  Acc own = Op::template neutral<Acc>();
  for (std::int64_t i = static_cast<int>(threadIdx.x); i < n; i += kReduceThreads) {
    own = op.combine(own, op.template map<Acc>(x[lines.reduced.x_at(first + i)]));
  }
  own = combine_block(op, own);
  if (threadIdx.x == 0) lines.store(task, own);
}

/// For neighbouring outputs that lie closer to each other than the elements of a line: a warp reads 32 outputs at once,
/// and the block's eight warps share their lines.
template <class Op, class T, class Acc>
__global__ void reduce_columns(Op op, ReduceLines<T, Acc> lines) {
  constexpr int kRows = kReduceThreads / 32, kSums = 4;
  LEVIN_SHARED(Acc, tile, kRows, 32);  // (row, column)
  const int column = static_cast<int>(threadIdx.x) % 32, row = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t tiles = ceil_div(lines.outputs, 32), block = static_cast<std::int64_t>(blockIdx.x);
  const std::int64_t output = block % tiles * 32 + column, cut = block / tiles;
  Acc sums[kSums];
  LEVIN_PRAGMA_UNROLL
  for (int s = 0; s < kSums; ++s) sums[s] = Op::template neutral<Acc>();
  if (output < lines.outputs) {
    const T* const x = lines.x + lines.kept.x_at(output);
    const std::int64_t task = output * lines.cuts + cut, begin = lines.first_of(task);
    const std::int64_t end = begin + lines.length_of(task);
    for (std::int64_t i = begin + row; i < end; i += kSums * kRows) {
      LEVIN_PRAGMA_UNROLL
      for (int s = 0; s < kSums; ++s) {
        const std::int64_t at = i + s * kRows;
        if (at < end) sums[s] = op.combine(sums[s], op.template map<Acc>(x[lines.reduced.x_at(at)]));
      }
    }
  }
  tile[row][column] = op.combine(op.combine(sums[0], sums[1]), op.combine(sums[2], sums[3]));
  __syncthreads();
  if (row == 0 && output < lines.outputs) {
    Acc all = tile[0][column];
    for (int r = 1; r < kRows; ++r) all = op.combine(all, tile[r][column]);
    lines.store(output * lines.cuts + cut, all);
  }
}

}  // namespace levin::kernels::cuda
