#pragma once
// Transposed copy of one tile.

#include <cstdint>

namespace levin::kernels::cpu {

using std::int64_t;

/// Number of rows and columns of a full tile.
inline constexpr int64_t kTile = 64;

/// Computes out[c * out_stride + r] = in[r * in_stride + c] for r < rows, c < columns, both at most kTile; strides are
/// in elements of `size` (1, 2, 4 or 8) bytes.
void transpose_tile(int64_t size, void* out, int64_t out_stride, const void* in, int64_t in_stride, int64_t rows,
                    int64_t columns);

}  // namespace levin::kernels::cpu
