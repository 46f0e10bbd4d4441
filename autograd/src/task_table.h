#pragma once

#include <levin/autograd/node.h>

#include <bit>
#include <cstdint>
#include <vector>

namespace levin {

/// Maps Node* to task number by open addressing: the pass looks up every edge twice.
class TaskTable {
 public:
  int& at(Node* node) {
    if (used_ * 2 >= slots_.size()) grow();
    std::size_t i = hash(node);
    while (slots_[i].node && slots_[i].node != node) i = (i + 1) & (slots_.size() - 1);
    if (!slots_[i].node) {
      slots_[i] = {node, -1};
      ++used_;
    }
    return slots_[i].task;
  }

 private:
  struct Slot {
    Node* node = nullptr;
    int task = -1;
  };
  std::size_t hash(Node* node) const {
    return (std::bit_cast<std::uintptr_t>(node) * 0x9E3779B97F4A7C15ull >> 20) & (slots_.size() - 1);
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
    old.swap(slots_);
    used_ = 0;
    for (const Slot& s : old)
      if (s.node) at(s.node) = s.task;
  }
  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

}  // namespace levin
