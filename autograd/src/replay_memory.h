#pragma once
// The memory of the tensors that a captured step makes.

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace levin {

/// Plans the memory of a captured step while it is recorded: a tensor takes the smallest free range that holds it, and
/// later tensors may take the range once the tensor is destroyed. Replays run in the same order, so the addresses stay
/// valid. Outside of captures nothing becomes free, since replays write to all addresses. Thread-safe.
class ReplayMemory {
 public:
  ReplayMemory() = default;
  ~ReplayMemory();
  ReplayMemory(const ReplayMemory&) = delete;
  ReplayMemory& operator=(const ReplayMemory&) = delete;

  /// Returns memory, 64-byte aligned; throws OutOfMemory.
  void* allocate(std::size_t bytes);
  /// Ends the life of a tensor.
  void free(void* p) noexcept;
  /// Called when a capture begins, and when it ends.
  void plan(bool on);
  /// True if the address is in this memory.
  bool owns(const void* p) const;
  /// Returns the bytes taken from the CPU's allocator.
  std::size_t bytes() const;

 private:
  struct Segment {
    std::byte* begin;
    std::size_t size;
  };

  mutable std::mutex mutex_;
  std::vector<Segment> segments_;
  std::map<std::byte*, std::size_t> free_, used_;  ///< ranges by address
  bool planning_ = false;
};

}  // namespace levin
