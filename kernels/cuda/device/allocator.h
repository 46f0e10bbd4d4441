#pragma once
// The device's caching allocator. It allocates whole segments from the device and cuts them into blocks; freed blocks
// are merged with free neighbours and kept. A block belongs to the stream that it was allocated for: there it can be
// reused at once, since the stream runs the former user's work before the next one's.
//
// The sizes are those of PyTorch's allocator. The host never touches device memory.

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
inline constexpr std::size_t kUnit = 512;                 // size of every block is a multiple of it
inline constexpr std::size_t kSmall = kMiB;               // largest small request,
inline constexpr std::size_t kSmallSegment = 2 * kMiB;    // which is cut from a segment of this size
inline constexpr std::size_t kMedium = 10 * kMiB;         // requests below this size are cut
inline constexpr std::size_t kMediumSegment = 20 * kMiB;  // from a segment of this size;
inline constexpr std::size_t kLargeStep = 2 * kMiB;       // larger ones get their own segment, a multiple of this
}  // namespace sizes

class Allocator {
 public:
  Allocator(int device, bool caching);
  /// Gives all memory back to the device; blocks still allocated must not be used any more.
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// Sets whether blocks are cut from the cache from now on; returns the former setting. Blocks in use are freed as
  /// they were allocated.
  bool set_caching(bool on);

  /// Allocates memory aligned to 256 bytes; a size of 0 gives a valid pointer too. Throws OutOfMemory.
  void* allocate(std::size_t bytes, cudaStream_t stream);
  /// Allocates as allocate(), but never from a graph's pool, so that no captured work reuses the memory.
  void* allocate_outside_captures(std::size_t bytes, cudaStream_t stream);
  void free(void* p) noexcept;
  /// Marks the block that begins at `p` as used on `stream` too; ignores memory from elsewhere.
  void record_stream(const void* p, cudaStream_t stream);
  /// Waits for the device and gives back all segments that are completely free.
  void empty_cache();

  levin::cuda::MemoryReport report() const;
  void reset_peaks();
  void set_cap(std::size_t bytes);  ///< limit of `reserved`; 0 for none

  // Memory of graphs. While a capture runs, allocations of its thread or its stream come from the pool, and no event is
  // recorded or queried.

  /// Begins a capture with the pool, which is created if it does not exist, and holds the pool.
  void begin_pool(std::uint64_t pool, cudaStream_t stream);
  /// Ends the capture; the pool stays held.
  void end_pool(std::uint64_t pool);
  /// Releases a hold. After the last one the pool's memory returns to the cache; none of its work may still run.
  void release_pool(std::uint64_t pool) noexcept;

 private:
  struct Pool;
  struct PrivatePool;
  struct Block {
    char* p = nullptr;
    std::size_t bytes = 0;
    cudaStream_t stream = nullptr;
    Pool* pool = nullptr;
    Block *before = nullptr, *after = nullptr;  // neighbours in the segment
    std::vector<cudaStream_t> used_on;          // other streams
    int events = 0;                             // number of events that a parked block waits for
    bool is_free = false, is_alone = false;     // alone: a segment for one allocation
    bool is_whole() const { return !before && !after; }
  };
  struct BestFit {
    bool operator()(const Block* a, const Block* b) const;
  };
  struct Pool {
    std::set<Block*, BestFit> free;
    bool small = false;
    PrivatePool* owner = nullptr;  // null for the general pools
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

  // All of these require the mutex.
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
  std::map<cudaStream_t, std::deque<Parked>> parked_;  // events of one stream complete in order
  std::map<std::uint64_t, std::unique_ptr<PrivatePool>> private_;
  std::vector<Capture> captures_;
  std::vector<Block*> late_;  // blocks freed during a capture, retired after it
  levin::cuda::MemoryReport stats_;

  // Number of captures that the thread runs on any device; during these it must neither wait for events nor query them.
  static thread_local int captures_of_thread_;
};

/// Returns the device's allocator. LEVIN_CUDA_CACHING=0 makes every block a separate allocation of the device, so that
/// tools find accesses out of bounds; builds with the address sanitizer begin so.
Allocator& allocator(int device);
/// Empties the caches of all devices that were used.
void empty_all_caches();

/// Formats a size for people: "1.50 GiB".
std::string human_bytes(std::size_t bytes);
/// Returns a table for people.
std::string summary(int device, const levin::cuda::MemoryReport& report);

}  // namespace levin::kernels::cuda
