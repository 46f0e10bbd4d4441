#pragma once
// The products of wgmma that a thread has started. They read shared memory and write their sums when the thread waits
// for them, which is as late as on a GPU.

#include <cstdint>
#include <deque>
#include <source_location>

namespace levin::emulator {

enum class MmaInput { f16, bf16, tf32 };

/// An operand of wgmma: rows of 128 bytes in shared memory with swizzled chunks, as kernels/cuda/base/ptx.h describes.
struct GroupOperand {
  const unsigned char* start = nullptr;  ///< address of the first element before swizzling
  int block_stride = 0;                  ///< along the lines: bytes from 64 lines to the next 64
  bool along_lines = false;

  GroupOperand plus(int bytes) const { return {start + bytes, block_stride, along_lines}; }
};

/// A thread's part of an operand A in registers.
struct GroupRegisters {
  const std::uint32_t* registers = nullptr;  ///< four, which must keep their values until the wait; null: A is shared
  std::uint32_t values[4] = {};              ///< of the registers when the product began
  std::uint32_t pairs[2][8] = {};            ///< the thread's two rows of 16 elements, from four lanes
};

/// A thread's part of one product: two rows of A by all columns of B.
struct GroupProduct {
  MmaInput input;
  int tiles;  ///< columns of B / 8
  float* d;   ///< (tiles, 4)
  GroupOperand a, b;
  bool add;
  int row, column;  ///< the first row and column of this thread
  GroupRegisters registers;
  std::source_location site;
};

class GroupProducts {
 public:
  void begin(const GroupProduct& product);
  /// Puts the products started since the last commit into a group, which may be empty.
  void commit();
  /// Takes out the oldest product of all committed groups except the newest `pending`; false if there is none.
  bool take(int pending, GroupProduct& product);
  bool empty() const { return products_.empty(); }
  void clear() { products_.clear(), groups_ = 0; }

 private:
  struct Started {
    GroupProduct product;
    int group;  ///< number of commits before it
  };
  std::deque<Started> products_;  ///< in the order in which they were started
  int groups_ = 0;
};

}  // namespace levin::emulator
