#pragma once
// Products of a matrix and a vector. Tiles would compute 64 columns to keep one; here every element of the matrix is
// read once, with coalesced accesses. With contiguous lines a warp adds up a line, or a block if lines are few and
// long. With adjacent lines each lane has a line, eight warps share its elements, and K is split if lines are few. Any
// other strides are treated as lines. Bound: memory bandwidth.

#include "kernels/cuda/matmul/epilogue.cuh"
#include "kernels/cuda/reduce/group.cuh"

namespace levin::kernels::cuda {

/// y (batch, lines): each line of a matrix (lines, k) times a vector (k).
template <class T>
struct Gemv {
  Operand<T> matrix, vector;
  std::int64_t lines, k, batch;
  bool in_row;  ///< y is a row of C, else a column

  explicit Gemv(const Problem<T>& p)
      : matrix(p.n == 1 ? p.a : p.b),
        vector(p.n == 1 ? p.b : p.a),
        lines(p.n == 1 ? p.m : p.n),
        k(p.k),
        batch(p.batch),
        in_row(p.n != 1) {}

  __device__ void store(const Epilogue<T>& out, std::int64_t item, int split, std::int64_t line, Sum<T> sum) const {
    const Sum<T> sums[1] = {sum};
    out.write({item, split, 0, 0}, in_row ? 0 : line, in_row ? line : 0, sums);
  }
};

/// With kWidth above 1 the line and the vector are dense and begin at multiples of kWidth elements, and k is a
/// multiple.
template <class Group, class T, int kWidth>
__global__ void gemv_lines(Gemv<T> g, Epilogue<T> out) {
  using S = Sum<T>;
  using Elements = Pack<T, kWidth>;
  for (std::int64_t task = Group::number(); task < g.batch * g.lines; task += Group::count()) {
    const std::int64_t item = task / g.lines, line = task % g.lines;
    const T *const row = g.matrix.of(item) + line * g.matrix.line, *const x = g.vector.of(item);
    S sum{};
    for (std::int64_t k = Group::rank() * kWidth; k < g.k; k += Group::size() * kWidth) {
      const auto a = vector_at<Elements>(row + (kWidth > 1 ? k : k * g.matrix.step));
      const auto b = vector_at<Elements>(x + (kWidth > 1 ? k : k * g.vector.step));
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kWidth; ++i) sum += convert<S>(a[i]) * convert<S>(b[i]);
    }
    sum = Group::reduce(sum, Plus{}, S{});
    if (Group::rank() == 0) g.store(out, item, 0, line, sum);
  }
}

inline constexpr int kGemvWarps = 8;

/// A block computes 32 lines over a part of K.
template <class T>
__global__ void gemv_columns(Gemv<T> g, Epilogue<T> out, TileGrid grid) {
  using S = Sum<T>;
  LEVIN_SHARED(S, sums, kGemvWarps, 32);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const TilePlace place = grid.at(static_cast<std::int64_t>(blockIdx.x));
  const std::int64_t line = std::int64_t{place.row} * 32 + lane, begin = place.split * grid.k_part;
  const std::int64_t end = begin + grid.k_part < g.k ? begin + grid.k_part : g.k;
  S sum{};
  if (line < g.lines) {
    const T *const a = g.matrix.of(place.batch) + line * g.matrix.line, *const x = g.vector.of(place.batch);
    for (std::int64_t k = begin + warp; k < end; k += kGemvWarps) {
      sum += convert<S>(a[k * g.matrix.step]) * convert<S>(x[k * g.vector.step]);
    }
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || line >= g.lines) return;
  for (int w = 1; w < kGemvWarps; ++w) sum += sums[w][lane];
  g.store(out, place.batch, place.split, line, sum);
}

}  // namespace levin::kernels::cuda
