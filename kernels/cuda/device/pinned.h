#pragma once
// Page-locked host memory through which copies between host and device pass, so that they overlap with the host's work.

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <deque>
#include <mutex>
#include <vector>

namespace levin::kernels::cuda {

class PinnedPool {
 public:
  struct Buffer {
    void* p = nullptr;
    std::size_t bytes = 0;  ///< a power of two
  };
  struct Stats {
    std::size_t reserved = 0;            ///< bytes taken from the system
    std::size_t in_flight = 0;           ///< number of buffers that a copy may still use
    std::size_t system_allocations = 0;  ///< number of allocations from the system
  };

  static constexpr std::size_t kSmallest = 4096;
  static constexpr std::size_t kLargest = std::size_t{4} << 20;  ///< longer copies are split into pieces
  static constexpr std::size_t kMost = std::size_t{256} << 20;   ///< limit of `reserved`; beyond it, copies wait

  /// Returns an unused buffer of at least `bytes` (at most kLargest). Throws OutOfMemory.
  Buffer take(std::size_t bytes);
  /// Makes the buffer free again once the work queued on the device's stream so far is done.
  void put_back(Buffer buffer, int device, cudaStream_t stream);
  /// Waits for the copies in flight and frees all buffers.
  void empty();
  Stats stats() const;

 private:
  struct InFlight {
    Buffer buffer;
    int device;
    cudaEvent_t done;
  };
  void poll() noexcept;
  void wait_for_oldest() noexcept;
  void land(const InFlight& f) noexcept;

  static constexpr int kClasses = 11;  // from 4 KiB to 4 MiB
  mutable std::mutex mutex_;
  std::array<std::vector<void*>, kClasses> free_;
  std::deque<InFlight> in_flight_;
  Stats stats_;
};

PinnedPool& pinned_pool();

}  // namespace levin::kernels::cuda
