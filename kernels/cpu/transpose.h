#pragma once
// A tile of a transposed copy.

#include <cstdint>

namespace levin::kernels::cpu {

using std::int64_t;

/// Rows and columns of a whole tile.
inline constexpr int64_t kTile = 64;

/// out[c * out_stride + r] = in[r * in_stride + c] for r < rows, c < columns, both at most kTile; strides in elements
/// of `size` (1, 2, 4 or 8) bytes.
void transpose_tile(int64_t size, void* out, int64_t out_stride, const void* in, int64_t in_stride, int64_t rows,
                    int64_t columns);

}  // namespace levin::kernels::cpu
