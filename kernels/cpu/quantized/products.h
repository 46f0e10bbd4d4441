#pragma once
// The interface between an instruction set and the drivers of int8 products. The drivers are plain C++ and compiled
// once.

#include <cstdint>

namespace levin::kernels::cpu {

using std::int64_t;

inline constexpr int kInt8Rows = 4;     ///< most rows of a tile
inline constexpr int kInt8Columns = 4;  ///< columns of a tile

/// The dot products of up to four rows with four columns, each of k adjacent elements. Columns may be the same memory.
struct Int8Tile {
  int64_t k;
  const void* rows[kInt8Rows];        // int8, or uint8 with rows_unsigned
  const void* columns[kInt8Columns];  // the other of the two
};

/// Tiles read exactly k elements a row and column.
struct Int8Ops {
  /// Exact sums: sums[i * 4 + j], for `count` rows, of int8 times uint8.
  void (*tile)(const Int8Tile& tile, int count, bool rows_unsigned, std::int32_t* sums);
  /// The same of float rows and int8 columns, in float.
  void (*float_tile)(const Int8Tile& tile, int count, float* sums);
  /// Finds the least and the greatest of n values and 0; false if a value is not finite.
  bool (*range)(const float* x, int64_t n, float& low, float& high);
  /// q = round(x / step) + zero, limited to 0..255.
  void (*quantize)(const float* x, int64_t n, float step, std::int32_t zero, std::uint8_t* q);
  /// w = scale * q.
  void (*dequantize)(const std::int8_t* q, int64_t n, float scale, float* w);
};

/// Returns the functions of the best instruction set; without `dot_instructions` these use no dot products of bytes
/// (AVX512-VNNI), for tests on a machine that has them.
Int8Ops int8_ops(bool dot_instructions = true);

/// Returns the tile of AVX512-VNNI; null where the processor does not have it.
using Int8TileFn = decltype(Int8Ops::tile);
Int8TileFn vnni_tile();

/// Step and zero point of values in [low, high], which contains 0 (see LinearInt8Args).
struct Int8Steps {
  float step;
  std::int32_t zero;
};
Int8Steps int8_steps(float low, float high);

/// Quantizes n values; returns a step of NaN, and zeros, if one is not finite.
Int8Steps quantize_int8(const Int8Ops& ops, const float* x, int64_t n, std::uint8_t* q);

}  // namespace levin::kernels::cpu
