#pragma once
// Page-locked memory of host tensors: copies from it need no intermediate buffer.

#include <cuda_runtime.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace levin::kernels::cuda {

class PinnedTensors {
 public:
  struct Stats {
    std::size_t reserved = 0;            ///< bytes taken from the system
    std::size_t in_use = 0;              ///< number of blocks that a tensor holds
    std::size_t in_flight = 0;           ///< number of blocks without a tensor, which copies may still read
    std::size_t system_allocations = 0;  ///< number of allocations from the system
  };

  /// Returns memory of at least `bytes`. Throws OutOfMemory.
  void* take(std::size_t bytes);
  /// Called when the tensor is destroyed: the block may be reused when the copies in flight have read it.
  void give_back(void* p) noexcept;
  /// True if these bytes lie in a block that a tensor holds.
  bool holds(const void* p, std::size_t bytes) const;
  /// Records that work queued so far on the device's stream may read the block of `p`.
  void record_use(const void* p, int device, cudaStream_t stream);
  /// Gives unused blocks back to the system.
  void empty();
  Stats stats() const;

 private:
  struct Use {
    int device;
    cudaEvent_t done;
  };
  enum class Standing { held, in_flight, unused };
  struct Block {
    std::size_t bytes = 0;
    Standing standing = Standing::held;
    std::vector<Use> uses;
  };
  using Blocks = std::map<const std::byte*, Block>;

  Blocks::const_iterator find(const void* p) const;
  void poll() noexcept;
  static void drop_finished(std::vector<Use>& uses) noexcept;

  mutable std::mutex mutex_;
  Blocks blocks_;
  std::multimap<std::size_t, std::byte*> free_;  // by size
  Stats stats_;
};

PinnedTensors& pinned_tensors();

}  // namespace levin::kernels::cuda
