#pragma once
// A transposing copy: planes of out (columns, rows) and in (rows, columns), where rows are the unit axis of out and
// columns that of in, and its division among blocks.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/elementwise/plan.h"

#include <optional>

namespace levin::kernels::cuda {

struct TransposeProblem {
  void* out = nullptr;
  const void* in = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t out_pitch = 0, in_pitch = 0;  ///< strides of a column in out and of a row in in
  int dims = 0;                              ///< number of axes of the planes
  Divider sizes[kMaxDims];
  std::int64_t strides[2][kMaxDims] = {};  ///< in out, and in in
  std::int64_t planes = 1;
  Divider across, down;  ///< tiles of a plane

  /// Cuts planes into tiles and returns the number of tiles.
  std::int64_t cut(int side) {
    across = Divider(static_cast<std::uint32_t>(ceil_div(columns, side)));
    down = Divider(static_cast<std::uint32_t>(ceil_div(rows, side)));
    return planes * ceil_div(columns, side) * ceil_div(rows, side);
  }
};

/// A tile's first row and column, and its plane's offsets.
struct TransposePlace {
  std::int64_t row, column, out, in;
};

__device__ inline TransposePlace find_tile(const TransposeProblem& p, int side) {
  const std::uint32_t line = p.across.quotient(blockIdx.x);
  std::uint32_t plane = p.down.quotient(line);
  TransposePlace place{};
  place.column = static_cast<std::int64_t>(blockIdx.x - line * p.across.divisor) * side;
  place.row = static_cast<std::int64_t>(line - plane * p.down.divisor) * side;
  for (int d = p.dims - 1; d >= 0; --d) {
    const std::uint32_t next = p.sizes[d].quotient(plane), index = plane - next * p.sizes[d].divisor;
    place.out += static_cast<std::int64_t>(index) * p.strides[0][d];
    place.in += static_cast<std::int64_t>(index) * p.strides[1][d];
    plane = next;
  }
  return place;
}

/// Returns the copy as a transposition, or nothing if it is not one.
std::optional<TransposeProblem> find_transpose(const TensorView& out, const TensorView& x);

}  // namespace levin::kernels::cuda
