// As with asynchronous copies, the thread sanitizer does not instrument the list: the thread and the scheduler use it
// in turn. The products themselves are computed in instrumented code (instructions/group_products.cpp).

#include <levin/emulator/group_products.h>

#include "tsan.h"

namespace levin::emulator {

void GroupProducts::begin(const GroupProduct& product) {
  const Unwatched unwatched;
  products_.push_back({product, groups_});
}

void GroupProducts::commit() { ++groups_; }

bool GroupProducts::take(int pending, GroupProduct& product) {
  if (products_.empty() || products_.front().group >= groups_ - pending) return false;
  product = products_.front().product;
  const Unwatched unwatched;
  products_.pop_front();
  return true;
}

}  // namespace levin::emulator
