// Transposed copies of a tile. A whole tile goes through a buffer: lines of a matrix whose rows are a power of two
// apart map to the same cache sets, but the buffer is read and written as a block.
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/transpose.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/transpose.h"

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {

/// Not inlined, which keeps programs small.
template <class T>
HWY_NOINLINE void scalar_tile(T* out, int64_t os, const T* in, int64_t is, int64_t rows, int64_t columns) {
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) out[c * os + r] = in[r * is + c];
}

/// Uses floats or doubles as carriers of any 4 or 8 bytes: loads, shuffles and stores keep all bits. Pieces of whole
/// vectors are transposed in registers, the rows and columns beyond them one by one.
template <class T>
HWY_INLINE void simd_tile(T* out, int64_t os, const T* in, int64_t is, int64_t rows, int64_t columns) {
  const Simd<T> d;
  constexpr int64_t lanes = kLanes<T>, block = kBlockLanes<T>;
  HWY_ALIGN T tile[kTile * kTile];
  if (rows == kTile && columns == kTile) {
    for (int64_t r = 0; r < kTile; ++r)
      for (int64_t c = 0; c < kTile; c += lanes) hn::Store(hn::LoadU(d, in + r * is + c), d, tile + r * kTile + c);
    in = tile, is = kTile;
  }
  const int64_t whole_rows = rows / lanes * lanes, whole_columns = columns / block * block;
  for (int64_t c = 0; c < whole_columns; c += block) {
    for (int64_t r = 0; r < whole_rows; r += lanes) {
      const T* lines[lanes];
      for (int64_t i = 0; i < lanes; ++i) lines[i] = in + (r + i) * is;
      SimdVec<T> columns_of[block];
      transpose_piece<T>(lines, c, columns_of);
      for (int64_t i = 0; i < block; ++i) hn::StoreU(columns_of[i], d, out + (c + i) * os + r);
    }
  }
  if (whole_rows < rows) scalar_tile(out + whole_rows, os, in + whole_rows * is, is, rows - whole_rows, columns);
  if (whole_columns < columns)
    scalar_tile(out + whole_columns * os, os, in + whole_columns, is, whole_rows, columns - whole_columns);
}

}  // namespace

void transpose_1(void* out, int64_t os, const void* in, int64_t is, int64_t rows, int64_t columns) {
  scalar_tile(static_cast<std::uint8_t*>(out), os, static_cast<const std::uint8_t*>(in), is, rows, columns);
}
void transpose_2(void* out, int64_t os, const void* in, int64_t is, int64_t rows, int64_t columns) {
  scalar_tile(static_cast<std::uint16_t*>(out), os, static_cast<const std::uint16_t*>(in), is, rows, columns);
}
void transpose_4(void* out, int64_t os, const void* in, int64_t is, int64_t rows, int64_t columns) {
  simd_tile(static_cast<float*>(out), os, static_cast<const float*>(in), is, rows, columns);
}
void transpose_8(void* out, int64_t os, const void* in, int64_t is, int64_t rows, int64_t columns) {
  simd_tile(static_cast<double*>(out), os, static_cast<const double*>(in), is, rows, columns);
}

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels::cpu {

HWY_EXPORT(transpose_1);
HWY_EXPORT(transpose_2);
HWY_EXPORT(transpose_4);
HWY_EXPORT(transpose_8);

void transpose_tile(int64_t size, void* out, int64_t os, const void* in, int64_t is, int64_t rows, int64_t columns) {
  switch (size) {
    case 1: return HWY_DYNAMIC_DISPATCH(transpose_1)(out, os, in, is, rows, columns);
    case 2: return HWY_DYNAMIC_DISPATCH(transpose_2)(out, os, in, is, rows, columns);
    case 4: return HWY_DYNAMIC_DISPATCH(transpose_4)(out, os, in, is, rows, columns);
    default: return HWY_DYNAMIC_DISPATCH(transpose_8)(out, os, in, is, rows, columns);
  }
}

}  // namespace levin::kernels::cpu
#endif
