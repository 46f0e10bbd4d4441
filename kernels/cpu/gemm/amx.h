#pragma once
// The matrix unit of processors with AMX (Intel, from Sapphire Rapids on), which multiplies tiles of bfloat16 numbers
// and adds the products in float.

#include <cstdint>

namespace levin::kernels::cpu {

using std::int64_t;

/// A float is split into three bfloat16 parts of 8 bits each, whose sum it is: high, middle and low.
inline constexpr int64_t kParts = 3;
/// Rows of A, or columns of B, of a packed strip; terms of the sum in a step.
inline constexpr int64_t kStripWidth = 16, kStepTerms = 32;
/// Numbers of a tile, and of a step of a strip: one tile for each part, one after the other.
inline constexpr int64_t kTileNumbers = kStripWidth * kStepTerms, kStepNumbers = kParts * kTileNumbers;

/// Computes C = start + A B for one block of C, whose operands are packed strips: step s of a strip begins at
/// s * kStepNumbers. In a tile of A, row i has the terms of row i of A; in a tile of B, row r has two terms of each
/// column, one beside the other. Both tiles pair term t with term t + 16.
struct AmxBlock {
  int64_t steps;
  const std::uint16_t *a, *b;             // first strips
  int64_t strip;                          // distance of the second strips
  int row_strips = 2, column_strips = 2;  // 1 or 2 of each
  const float* start = nullptr;           // (16 row_strips, 16 column_strips), or null for zeros; may be C
  int64_t start_rs = 0;                   // 0 for one row that all share
  float* c = nullptr;                     // (16 row_strips, 16 column_strips)
  int64_t c_rs = 0;
};

/// Places of the three parts in a step, in the order in which the unit reads them, for the hardware prefetcher.
inline constexpr int64_t kPlacesOfA[kParts] = {0, 1, 2}, kPlacesOfB[kParts] = {0, 2, 1};

/// The products that add up to one of floats, in the order in which they are added: part of A, part of B. The three
/// others, of a middle and a low part and of two low parts, are left out: they are at most 2^-24 of the product.
struct PartPair {
  int a, b;
};
inline constexpr PartPair kPartPairs[] = {{0, 0}, {0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}};

/// Functions that compute blocks. Tests have others, which run on every processor.
struct MatrixUnit {
  void (*begin)();  // called by each thread before its first block, and end() after its last
  void (*block)(const AmxBlock& block);
  void (*end)();
};

/// Returns the processor's matrix unit, or null if it has none, the operating system denies it, or
/// LEVIN_CPU_CAPABILITY forbids it.
const MatrixUnit* amx_unit();

}  // namespace levin::kernels::cpu
