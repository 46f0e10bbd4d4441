#pragma once
// A stable order of whole numbers, for sums whose terms must come in a fixed order.

#include "kernels/cuda/base/scratch.h"

namespace levin::kernels::cuda {

/// Sorts keys and tells where they stood: radix sort, 8 bits a pass, as many passes as the largest key needs.
class StableOrder {
 public:
  StableOrder(Stream& stream, std::int64_t count);

  std::uint64_t* keys() { return keys_[current_].get(); }           ///< (count); to be written before sort()
  const std::int64_t* places() { return places_[current_].get(); }  ///< (count); where each sorted key stood
  std::int64_t count() const { return count_; }

  /// All keys are below `bound`. Equal keys keep their order.
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
