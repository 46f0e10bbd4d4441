// Transposed copies of a tile. The tile goes through a buffer: lines of a matrix whose rows are a power of two apart
// map to the same cache sets, but the buffer is read and written as a block.
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

template <class T>
HWY_INLINE void scalar_tile(T* out, int64_t os, const T* in, int64_t is, int64_t rows, int64_t columns) {
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) out[c * os + r] = in[r * is + c];
}

/// Uses floats or doubles as carriers of any 4 or 8 bytes: loads, shuffles and stores keep all bits.
template <class T>
HWY_INLINE void simd_tile(T* out, int64_t os, const T* in, int64_t is, int64_t rows, int64_t columns) {
  const Simd<T> d;
  if (rows != kTile || columns != kTile) return scalar_tile(out, os, in, is, rows, columns);
  HWY_ALIGN T tile[kTile * kTile];
  for (int64_t r = 0; r < kTile; ++r)
    for (int64_t c = 0; c < kTile; c += kLanes<T>) hn::Store(hn::LoadU(d, in + r * is + c), d, tile + r * kTile + c);
  for (int64_t c = 0; c < kTile; c += kBlockLanes<T>) {
    for (int64_t r = 0; r < kTile; r += kLanes<T>) {
      const T* lines[kLanes<T>];
      for (int64_t i = 0; i < kLanes<T>; ++i) lines[i] = tile + (r + i) * kTile;
      SimdVec<T> columns_of[kBlockLanes<T>];
      transpose_piece<T>(lines, c, columns_of);
      for (int64_t i = 0; i < kBlockLanes<T>; ++i) hn::StoreU(columns_of[i], d, out + (c + i) * os + r);
    }
  }
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
