#pragma once
// The device's caching allocator. The device is asked for whole segments, which are cut into blocks; freed blocks are
// joined with their free neighbours and kept. A block belongs to the stream that it was allocated for: there it can be
// given out again at once, as the stream's order keeps the former user's work before the next one's.
//
// The sizes are those of PyTorch's allocator. Device memory is never touched by the host.

#include <levin/core/device.h>
#include <levin/kernels/cuda.h>

#include <cuda_runtime.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace levin::kernels::cuda {

namespace sizes {
inline constexpr std::size_t kMiB = std::size_t{1} << 20;
inline constexpr std::size_t kUnit = 512;                 // blocks are multiples of it
inline constexpr std::size_t kSmall = kMiB;               // requests up to here
inline constexpr std::size_t kSmallSegment = 2 * kMiB;    // are cut from segments of this size,
inline constexpr std::size_t kMedium = 10 * kMiB;         // those below here
inline constexpr std::size_t kMediumSegment = 20 * kMiB;  // from these,
inline constexpr std::size_t kLargeStep = 2 * kMiB;       // larger ones get a segment of their own, a multiple of this
}  // namespace sizes

class Allocator {
 public:
  Allocator(int device, bool caching);
  /// Gives everything back to the device; what is still live must not be used any more.
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// Whether blocks are cut from the cache from now on, and what it was. Those in use go the way they came.
  bool set_caching(bool on);

  /// Aligned to 256 bytes; no bytes give a valid pointer too. Throws OutOfMemory.
  void* allocate(std::size_t bytes, cudaStream_t stream);
  /// Never from a graph's pool, so that no captured work uses the memory for something else at another time.
  void* allocate_outside_captures(std::size_t bytes, cudaStream_t stream);
  void free(void* p) noexcept;
  /// The block that begins at `p` is used on `stream` too; memory from elsewhere is ignored.
  void record_stream(const void* p, cudaStream_t stream);
  /// Waits for the device and gives back all segments that are free as a whole.
  void empty_cache();

  levin::cuda::MemoryReport report() const;
  void reset_peaks();
  void set_cap(std::size_t bytes);  ///< of `reserved`; 0: none

  // Memory of graphs. While a capture runs, what its thread or its stream allocates comes from the pool, and no event
  // is recorded or asked.

  /// Begins a capture with the pool, which is made when it does not exist, and holds the pool.
  void begin_pool(std::uint64_t pool, cudaStream_t stream);
  /// The capture is over; the pool stays held.
  void end_pool(std::uint64_t pool);
  /// Undoes a hold. After the last one the pool's memory belongs to the cache; no work on it may be under way.
  void release_pool(std::uint64_t pool) noexcept;

 private:
  struct Pool;
  struct PrivatePool;
  struct Block {
    char* p = nullptr;
    std::size_t bytes = 0;
    cudaStream_t stream = nullptr;
    Pool* pool = nullptr;
    Block *before = nullptr, *after = nullptr;  // its neighbours in the segment
    std::vector<cudaStream_t> used_on;          // other streams
    int events = 0;                             // number of events that a parked block waits for
    bool is_free = false, is_alone = false;     // alone: a segment for this one use
    bool is_whole() const { return !before && !after; }
  };
  struct BestFit {
    bool operator()(const Block* a, const Block* b) const;
  };
  struct Pool {
    std::set<Block*, BestFit> free;
    bool small = false;
    PrivatePool* owner = nullptr;  // null: the general pools
  };
  struct PrivatePool {
    Pool small, large;
    int holds = 0;
  };
  struct Capture {
    std::uint64_t pool;
    cudaStream_t stream;
    std::thread::id thread;
  };
  struct Parked {
    cudaEvent_t event;
    Block* block;
  };

  // All of these run under the mutex.
  void* allocate_from(Pool& pool, std::size_t bytes, cudaStream_t stream);
  std::size_t checked_size(std::size_t bytes);
  Pool& pool_for(std::size_t bytes, cudaStream_t stream);
  Block* take_free(Pool& pool, std::size_t bytes, cudaStream_t stream);
  Block* take_segment(Pool& pool, std::size_t bytes, cudaStream_t stream);
  Block* add_segment(Pool& pool, std::size_t bytes, cudaStream_t stream);
  void cut(Block* block, std::size_t bytes);
  void* hand_out(Block* block);
  void give_back(Block* block) noexcept;
  void join(Block* block, Block* neighbour) noexcept;
  void* ask_device(std::size_t bytes);
  void drop_segment(Block* block) noexcept;
  void drop_free_segments() noexcept;
  void adopt(Pool& from, Pool& to) noexcept;
  bool may_wait() const { return captures_.empty() && captures_of_thread_ == 0; }
  void retire(Block* block) noexcept;
  void park(Block* block) noexcept;
  void settle() noexcept;
  void wait_for_parked() noexcept;
  void event_passed(const Parked& parked) noexcept;
  void free_uncached(Block* block) noexcept;
  [[noreturn]] void out_of_memory(std::size_t bytes, const char* why);

  const int device_;
  bool caching_;
  mutable std::mutex mutex_;
  Pool small_, large_;
  std::unordered_map<void*, Block*> live_;
  std::map<cudaStream_t, std::deque<Parked>> parked_;  // events of one stream pass in order
  std::map<std::uint64_t, std::unique_ptr<PrivatePool>> private_;
  std::vector<Capture> captures_;
  std::vector<Block*> late_;  // freed during a capture, to be retired after it
  levin::cuda::MemoryReport stats_;

  // Captures that the thread has under way on any device: it must not wait for events, nor ask about them.
  static thread_local int captures_of_thread_;
};

/// The device's allocator. LEVIN_CUDA_CACHING=0 makes every block an allocation of the device's own, so that tools find
/// accesses beyond its ends; builds with the address sanitizer begin so.
Allocator& allocator(int device);
/// Of the devices that were used.
void empty_all_caches();

/// "1.50 GiB"
std::string human_bytes(std::size_t bytes);
/// A table for people.
std::string summary(int device, const levin::cuda::MemoryReport& report);

}  // namespace levin::kernels::cuda
