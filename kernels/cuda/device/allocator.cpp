#include "kernels/cuda/device/allocator.h"

#include "kernels/cuda/base/error.h"
#include "kernels/cuda/device/driver.h"
#include "kernels/cuda/device/streams.h"

#include <algorithm>
#include <tuple>

namespace levin::kernels::cuda {

namespace {

using namespace sizes;

constexpr std::size_t kMost = std::size_t{1} << 46;  // larger requests could overflow when rounded

constexpr std::size_t round_up(std::size_t bytes, std::size_t step) { return (bytes + step - 1) / step * step; }

constexpr std::size_t block_bytes(std::size_t bytes) { return std::max(round_up(bytes, kUnit), kUnit); }

constexpr std::size_t segment_bytes(std::size_t bytes) {
  return bytes <= kSmall ? kSmallSegment : bytes < kMedium ? kMediumSegment : round_up(bytes, kLargeStep);
}

}  // namespace

constinit thread_local int Allocator::captures_of_thread_ = 0;

bool Allocator::BestFit::operator()(const Block* a, const Block* b) const {
  return std::tuple(reinterpret_cast<std::uintptr_t>(a->stream), a->bytes, reinterpret_cast<std::uintptr_t>(a->p)) <
         std::tuple(reinterpret_cast<std::uintptr_t>(b->stream), b->bytes, reinterpret_cast<std::uintptr_t>(b->p));
}

Allocator::Allocator(int device, bool caching) : device_(device), caching_(caching) { small_.small = true; }

bool Allocator::set_caching(bool on) {
  const std::lock_guard lock(mutex_);
  return std::exchange(caching_, on);
}

Allocator::~Allocator() {
  wait_for_parked();
  const DeviceGuard guard(device_, std::nothrow);
  static_cast<void>(cudaDeviceSynchronize());
  while (!private_.empty()) {
    private_.begin()->second->holds = 1;
    release_pool(private_.begin()->first);
  }
  std::vector<Block*> rest(late_);
  for (const auto& [p, block] : live_) rest.push_back(block);
  for (Block* block : rest) give_back(block);
  drop_free_segments();
}

void* Allocator::allocate(std::size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  const std::size_t size = checked_size(bytes);
  return allocate_from(pool_for(size, stream), size, stream);
}

void* Allocator::allocate_outside_captures(std::size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  const std::size_t size = checked_size(bytes);
  return allocate_from(size <= kSmall ? small_ : large_, size, stream);
}

std::size_t Allocator::checked_size(std::size_t bytes) {
  if (bytes > kMost) [[unlikely]]
    out_of_memory(bytes, "more than any device has");
  return caching_ ? block_bytes(bytes) : std::max<std::size_t>(bytes, 1);
}

void* Allocator::allocate_from(Pool& pool, std::size_t size, cudaStream_t stream) {
  settle();
  Block* block = caching_ ? take_free(pool, size, stream) : nullptr;
  if (!block) block = take_segment(pool, size, stream);
  if (caching_) cut(block, size);
  block->is_alone = !caching_;
  return hand_out(block);
}

void Allocator::free(void* p) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(p);
  if (found == live_.end()) return;
  Block* block = found->second;
  live_.erase(found);
  stats_.allocated -= block->bytes;
  --stats_.live_blocks;
  const bool waits = !block->used_on.empty() || (block->is_alone && !block->pool->owner);
  if (waits && !may_wait()) {
    late_.push_back(block);
    ++stats_.parked_blocks;
  } else {
    retire(block);
  }
}

void Allocator::record_stream(const void* p, cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(const_cast<void*>(p));
  if (found == live_.end() || found->second->stream == stream) return;
  std::vector<cudaStream_t>& used_on = found->second->used_on;
  if (std::find(used_on.begin(), used_on.end(), stream) == used_on.end()) used_on.push_back(stream);
}

void Allocator::empty_cache() {
  const std::lock_guard lock(mutex_);
  if (!may_wait()) {
    throw DeviceError("[cuda] the cache cannot be emptied while a graph is captured. Do it before or after.");
  }
  settle();
  wait_for_parked();
  {
    const DeviceGuard guard(device_);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  drop_free_segments();
}

levin::cuda::MemoryReport Allocator::report() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void Allocator::reset_peaks() {
  const std::lock_guard lock(mutex_);
  stats_.peak_allocated = stats_.allocated;
  stats_.peak_reserved = stats_.reserved;
}

void Allocator::set_cap(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  stats_.cap = bytes;
}

void Allocator::begin_pool(std::uint64_t pool, cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  settle();
  std::unique_ptr<PrivatePool>& slot = private_[pool];
  if (!slot) {
    slot = std::make_unique<PrivatePool>();
    slot->small.small = true;
    slot->small.owner = slot->large.owner = slot.get();
  }
  ++slot->holds;
  captures_.push_back({pool, stream, std::this_thread::get_id()});
  ++captures_of_thread_;
}

void Allocator::end_pool(std::uint64_t pool) {
  const std::lock_guard lock(mutex_);
  const auto capture =
      std::find_if(captures_.begin(), captures_.end(), [&](const Capture& c) { return c.pool == pool; });
  if (capture == captures_.end()) return;
  if (capture->thread == std::this_thread::get_id()) --captures_of_thread_;
  captures_.erase(capture);
  settle();
}

void Allocator::release_pool(std::uint64_t pool) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = private_.find(pool);
  if (found == private_.end() || --found->second->holds > 0) return;
  adopt(found->second->small, small_);
  adopt(found->second->large, large_);
  private_.erase(found);
  if (!caching_) drop_free_segments();
}

Allocator::Pool& Allocator::pool_for(std::size_t bytes, cudaStream_t stream) {
  const bool small = bytes <= kSmall;
  for (const Capture& c : captures_) {
    if (c.stream != stream && c.thread != std::this_thread::get_id()) continue;
    PrivatePool& own = *private_.at(c.pool);
    return small ? own.small : own.large;
  }
  return small ? small_ : large_;
}

/// Returns the smallest free block of the stream that is large enough, or null.
Allocator::Block* Allocator::take_free(Pool& pool, std::size_t bytes, cudaStream_t stream) {
  Block wanted;
  wanted.stream = stream;
  wanted.bytes = bytes;
  const auto found = pool.free.lower_bound(&wanted);
  if (found == pool.free.end() || (*found)->stream != stream) return nullptr;
  Block* block = *found;
  pool.free.erase(found);
  block->is_free = false;
  return block;
}

/// Allocates a new segment; if the device has no memory left, first gives all free segments back to it.
Allocator::Block* Allocator::take_segment(Pool& pool, std::size_t bytes, cudaStream_t stream) {
  if (Block* block = add_segment(pool, bytes, stream)) return block;
  if (may_wait()) {
    ++stats_.retries;
    wait_for_parked();
    if (Block* block = caching_ ? take_free(pool, bytes, stream) : nullptr) return block;
    {
      const DeviceGuard guard(device_);
      check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }
    drop_free_segments();
    if (Block* block = add_segment(pool, bytes, stream)) return block;
  }
  const bool capped = stats_.cap > 0 && stats_.reserved + block_bytes(bytes) > stats_.cap;
  out_of_memory(bytes, capped ? "which the cap forbids" : "which the device refused");
}

/// Allocates a segment of the usual size, else one that just holds the request; null if both fail.
Allocator::Block* Allocator::add_segment(Pool& pool, std::size_t bytes, cudaStream_t stream) {
  std::size_t size = caching_ ? segment_bytes(bytes) : bytes;
  void* p = ask_device(size);
  if (const std::size_t least = round_up(bytes, kLargeStep); !p && caching_ && least < size) {
    size = least;
    p = ask_device(size);
  }
  if (!p) return nullptr;
  auto* block = new Block;
  block->p = static_cast<char*>(p);
  block->bytes = size;
  block->stream = stream;
  block->pool = &pool;
  stats_.reserved += size;
  stats_.peak_reserved = std::max(stats_.peak_reserved, stats_.reserved);
  ++stats_.segments;
  return block;
}

void* Allocator::ask_device(std::size_t bytes) {
  if (stats_.cap > 0 && stats_.reserved + bytes > stats_.cap) return nullptr;
  const DeviceGuard guard(device_);
  ++stats_.system_allocations;
  void* p = nullptr;
  // A capturing thread may allocate only in relaxed capture mode.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  const cudaError_t error = cudaMalloc(&p, bytes);
  static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode));
  if (error == cudaSuccess) return p;
  if (error != cudaErrorMemoryAllocation) check_failed(error, "cudaMalloc");
  static_cast<void>(cudaGetLastError());
  return nullptr;
}

/// Keeps the first part of the block and frees the rest if it is large enough.
void Allocator::cut(Block* block, std::size_t bytes) {
  const std::size_t rest = block->bytes - bytes;
  if (block->pool->small ? rest < kUnit : rest <= kSmall) return;
  auto* tail = new Block;
  tail->p = block->p + bytes;
  tail->bytes = rest;
  tail->stream = block->stream;
  tail->pool = block->pool;
  tail->before = block;
  tail->after = block->after;
  if (tail->after) tail->after->before = tail;
  block->after = tail;
  block->bytes = bytes;
  tail->is_free = true;
  tail->pool->free.insert(tail);
  ++stats_.splits;
}

void* Allocator::hand_out(Block* block) {
  live_.emplace(block->p, block);
  ++stats_.live_blocks;
  stats_.allocated += block->bytes;
  stats_.peak_allocated = std::max(stats_.peak_allocated, stats_.allocated);
  return block->p;
}

void Allocator::give_back(Block* block) noexcept {
  if (block->before && block->before->is_free) join(block, block->before);
  if (block->after && block->after->is_free) join(block, block->after);
  block->is_free = true;
  block->pool->free.insert(block);
}

void Allocator::join(Block* block, Block* neighbour) noexcept {
  neighbour->pool->free.erase(neighbour);
  if (neighbour == block->before) {
    block->p = neighbour->p;
    block->before = neighbour->before;
    if (block->before) block->before->after = block;
  } else {
    block->after = neighbour->after;
    if (block->after) block->after->before = block;
  }
  block->bytes += neighbour->bytes;
  delete neighbour;
  ++stats_.merges;
}

}  // namespace levin::kernels::cuda
