#pragma once
// Kernels for lines that the ladder's rungs do not support: short ones, strided ones, and columns.

#include "kernels/cuda/reduce/04_shuffles.cuh"

namespace levin::kernels::cuda {

/// Elements of a pack, of floating types: 8 bytes of a line, and 16 of neighbouring columns.
template <class T>
inline constexpr int kRunWidth = 8 / static_cast<int>(sizeof(T));
template <class T>
inline constexpr int kColumnWidth = 16 / static_cast<int>(sizeof(T));

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

/// Returns elements [at, at + N) of a line that begins at x.
template <bool kPacked, int N, class T>
__device__ inline Pack<T, N> load_run(const T* x, const ReduceWalk& walk, std::int32_t at) {
  if constexpr (kPacked) {
    return pack_at<N>(x + walk.at(at));
  } else {
    Pack<T, N> pack;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < N; ++i) pack[i] = x[walk.at(at + i)];
    return pack;
  }
}

/// Adds this thread's share of `n` elements, from element `begin` of the line, to its accumulators: packs of
/// neighbours, of which four are in flight.
template <bool kPacked, class Op, class T, class Acc, int kSums>
__device__ inline void add_run(const Op& op, const T* x, const ReduceWalk& walk, std::int32_t begin, std::int32_t n,
                               Acc (&sums)[kSums]) {
  constexpr int kWidth = kRunWidth<T>, kPacks = 4, kStep = kReduceThreads * kWidth;
  std::int32_t at = static_cast<int>(threadIdx.x) * kWidth;
  for (; at + (kPacks - 1) * kStep + kWidth <= n; at += kPacks * kStep) {  // no branch inside keeps loads together
    Pack<T, kWidth> packs[kPacks];
    LEVIN_PRAGMA_UNROLL
    for (int p = 0; p < kPacks; ++p) packs[p] = load_run<kPacked, kWidth>(x, walk, begin + at + p * kStep);
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kPacks * kWidth; ++i) {
      sums[i % kSums] = op.combine(sums[i % kSums], op.template map<Acc>(packs[i / kWidth][i % kWidth]));
    }
  }
  for (; at < n; at += kStep) {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      if (at + i < n) sums[i % kSums] = op.combine(sums[i % kSums], op.template map<Acc>(x[walk.at(begin + at + i)]));
    }
  }
}

/// The same for a line of two axes, as the pixels of a channel in a batch of images: a thread has four packs of 8 bytes
/// in flight. Where packs are not aligned, it reads their elements one by one.
template <class Op, class T, class Acc>
__global__ void __launch_bounds__(kReduceThreads, 4) reduce_runs(Op op, ReduceLines<T, Acc> lines) {
  constexpr int kSums = kRunWidth<T>;
  const std::int64_t task = static_cast<std::int64_t>(blockIdx.x);
  const auto begin = static_cast<std::int32_t>(lines.first_of(task));
  const auto n = static_cast<std::int32_t>(lines.length_of(task));
  const T* const x = lines.x + lines.kept.x_at(lines.output_of(task));
  Acc sums[kSums];
  LEVIN_PRAGMA_UNROLL
  for (int s = 0; s < kSums; ++s) sums[s] = Op::template neutral<Acc>();
  if (lines.packed) {
    add_run<true>(op, x, lines.walk, begin, n, sums);
  } else {
    add_run<false>(op, x, lines.walk, begin, n, sums);
  }
  for (int s = 1; s < kSums; ++s) sums[0] = op.combine(sums[0], sums[s]);
  const Acc all = combine_block(op, sums[0]);
  if (threadIdx.x == 0) lines.store(task, all);
}

/// Every column of a piece has this many accumulators, in turn.
inline constexpr int kColumnSums = 32;

/// Combines a column's accumulators, `column` being the first and the next `pitch` further, in an order that all
/// kernels share.
template <class Op, class Acc>
__device__ inline Acc combine_column(const Op& op, const Acc* column, int pitch) {
  constexpr int kEach = kColumnSums / 4;
  Acc all = Op::template neutral<Acc>();
  for (int r = 0; r < kEach; ++r) {
    const Acc* const sums = column + r * pitch;
    const Acc four = op.combine(op.combine(sums[0], sums[kEach * pitch]),
                                op.combine(sums[2 * kEach * pitch], sums[3 * kEach * pitch]));
    all = r == 0 ? four : op.combine(all, four);
  }
  return all;
}

/// For neighbouring outputs that lie closer to each other than the elements of a line: a warp reads 32 outputs at once,
/// and the block's eight warps share their lines.
template <class Op, class T, class Acc>
__global__ void reduce_columns(Op op, ReduceLines<T, Acc> lines) {
  constexpr int kRows = kReduceThreads / 32, kSums = kColumnSums / kRows;
  LEVIN_SHARED(Acc, tile, kColumnSums, 32);  // (accumulator, column)
  const int column = static_cast<int>(threadIdx.x) % 32, row = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t tiles = ceil_div(lines.outputs, 32), block = static_cast<std::int64_t>(blockIdx.x);
  const std::int64_t output = block % tiles * 32 + column, cut = block / tiles;
  const std::int64_t task = output * lines.cuts + cut;
  Acc sums[kSums];
  LEVIN_PRAGMA_UNROLL
  for (int s = 0; s < kSums; ++s) sums[s] = Op::template neutral<Acc>();
  if (output < lines.outputs) {
    const T* const x = lines.x + lines.kept.x_at(output);
    const std::int64_t begin = lines.first_of(task), end = begin + lines.length_of(task);
    for (std::int64_t i = begin + row; i < end; i += kColumnSums) {
      T values[kSums];
      LEVIN_PRAGMA_UNROLL
      for (int s = 0; s < kSums; ++s) {
        values[s] = i + s * kRows < end ? x[lines.reduced.x_at(i + s * kRows)] : T{};
      }
      LEVIN_PRAGMA_UNROLL
      for (int s = 0; s < kSums; ++s) {
        if (i + s * kRows < end) sums[s] = op.combine(sums[s], op.template map<Acc>(values[s]));
      }
    }
  }
  LEVIN_PRAGMA_UNROLL
  for (int s = 0; s < kSums; ++s) tile[s * kRows + row][column] = sums[s];
  __syncthreads();
  if (row == 0 && output < lines.outputs) lines.store(task, combine_column(op, &tile[0][column], 32));
}

/// The same for outputs in packs of 16 bytes: eight threads read 128 bytes of each of the block's 32 rows, and each has
/// four packs in flight.
template <class Op, class T, class Acc>
__global__ void __launch_bounds__(kReduceThreads, 3) reduce_packed_columns(Op op, ReduceLines<T, Acc> lines) {
  constexpr int kWidth = kColumnWidth<T>, kLanes = kReduceThreads / kColumnSums, kFlight = 4;
  constexpr int kColumns = kLanes * kWidth, kPitch = kColumns + kLanes;  // the padding avoids bank conflicts
  LEVIN_SHARED(Acc, tile, kColumnSums, kPitch);                          // (accumulator, (element of the pack, lane))
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes, row = thread / kLanes;
  const std::int64_t tiles = ceil_div(lines.outputs, kColumns), block = static_cast<std::int64_t>(blockIdx.x);
  const std::int64_t first = block % tiles * kColumns, cut = block / tiles;
  const auto begin = static_cast<std::int32_t>(lines.first_of(cut));
  const std::int32_t end = begin + static_cast<std::int32_t>(lines.length_of(cut));
  Acc sums[kWidth];
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < kWidth; ++i) sums[i] = Op::template neutral<Acc>();
  if (first + lane * kWidth < lines.outputs) {
    const T* const x = lines.x + lines.kept.x_at(first + lane * kWidth);
    std::int32_t at = begin + row;
    for (; at + (kFlight - 1) * kColumnSums < end; at += kFlight * kColumnSums) {  // no branch inside
      Pack<T, kWidth> packs[kFlight];
      LEVIN_PRAGMA_UNROLL
      for (int f = 0; f < kFlight; ++f) packs[f] = pack_at<kWidth>(x + lines.walk.at(at + f * kColumnSums));
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kFlight * kWidth; ++i) {
        sums[i % kWidth] = op.combine(sums[i % kWidth], op.template map<Acc>(packs[i / kWidth][i % kWidth]));
      }
    }
    for (; at < end; at += kColumnSums) {
      const Pack<T, kWidth> pack = pack_at<kWidth>(x + lines.walk.at(at));
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kWidth; ++i) sums[i] = op.combine(sums[i], op.template map<Acc>(pack[i]));
    }
  }
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < kWidth; ++i) tile[row][i * kLanes + lane] = sums[i];
  __syncthreads();
  for (int place = thread; place < kColumns; place += kReduceThreads) {
    const std::int64_t output = first + place % kLanes * kWidth + place / kLanes;
    if (output < lines.outputs) {
      lines.store(output * lines.cuts + cut, combine_column(op, &tile[0][place], kPitch));
    }
  }
}

}  // namespace levin::kernels::cuda
