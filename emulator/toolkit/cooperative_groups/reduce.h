#pragma once
// Reductions over a tile of cooperative groups in the emulator, in a fixed order.

#include <cooperative_groups.h>

namespace cooperative_groups {

template <class T>
struct plus {
  T operator()(T a, T b) const { return static_cast<T>(a + b); }
};
/// Returns the smaller value; of equal ones, the operands' order decides which is kept.
template <class T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};

/// Reduces the values of the tile's threads with `op`; every thread gets the result.
template <unsigned Size, class Parent, class T, class Op>
T reduce(const thread_block_tile<Size, Parent>& tile, T value, Op op, Site site = Site::current()) {
  for (unsigned offset = Size / 2; offset > 0; offset /= 2) value = op(value, tile.shfl_xor(value, offset, site));
  return value;
}

}  // namespace cooperative_groups
