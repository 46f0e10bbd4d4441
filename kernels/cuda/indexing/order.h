#pragma once
// A stable sort of integers, for sums whose terms must be added in a fixed order.

#include "kernels/cuda/base/scratch.h"

namespace levin::kernels::cuda {

/// Sorts keys and returns their former positions: radix sort with 8 bits per pass, as many as the largest key needs.
class StableOrder {
 public:
  StableOrder(Stream& stream, std::int64_t count);

  std::uint64_t* keys() { return keys_[current_].get(); }           ///< (count); written before sort()
  const std::int64_t* places() { return places_[current_].get(); }  ///< (count); former position of each sorted key
  std::int64_t count() const { return count_; }

  /// Sorts keys below `bound`. Equal keys keep their order.
  void sort(std::int64_t bound);

 private:
  void pass(int shift, bool first);

  Stream stream_;
  std::int64_t count_;
  int current_ = 0;
  Scratch<std::uint64_t> keys_[2];
  Scratch<std::int64_t> places_[2];
  Scratch<std::int64_t> counts_, totals_;  // (256, blocks); (256)
};

}  // namespace levin::kernels::cuda
