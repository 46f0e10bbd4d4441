// The caching allocator's other half: blocks that wait for streams, memory returned to the device, and reports for
// people.

#include "kernels/cuda/base/error.h"
#include "kernels/cuda/device/allocator.h"
#include "kernels/cuda/device/driver.h"
#include "kernels/cuda/device/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <string_view>

namespace levin::kernels::cuda {

/// Frees a block that has no user any more.
void Allocator::retire(Block* block) noexcept {
  if (block->is_alone && !block->pool->owner) {
    free_uncached(block);
  } else if (!block->used_on.empty()) {
    park(block);
  } else {
    give_back(block);  // a graph's own block, without caching: it stays until the graph is destroyed
  }
}

/// Records events on the block's other streams; the block is free again when all of them have passed.
void Allocator::park(Block* block) noexcept {
  ++stats_.parked_blocks;
  block->events = 1;  // held until all events are recorded
  for (cudaStream_t stream : std::exchange(block->used_on, {})) {
    try {
      cudaEvent_t event = event_pool().take(device_);
      const DeviceGuard guard(device_, std::nothrow);
      if (cudaEventRecord(event, stream) == cudaSuccess) {
        parked_[stream].push_back({event, block});
        ++block->events;
      } else {
        event_pool().put_back(device_, event);
      }
    } catch (const Error&) {  // the device has failed, so nothing uses the block any more
    }
  }
  event_passed({nullptr, block});
}

void Allocator::event_passed(const Parked& parked) noexcept {
  if (parked.event) event_pool().put_back(device_, parked.event);
  if (--parked.block->events > 0) return;
  --stats_.parked_blocks;
  give_back(parked.block);
}

/// Retires blocks freed during a capture, and frees the blocks whose events have passed.
void Allocator::settle() noexcept {
  if (!may_wait()) return;
  for (Block* block : std::exchange(late_, {})) {
    --stats_.parked_blocks;
    retire(block);
  }
  if (parked_.empty()) return;
  for (auto& [stream, queue] : parked_) {
    while (!queue.empty() && cudaEventQuery(queue.front().event) != cudaErrorNotReady) {
      event_passed(queue.front());
      queue.pop_front();
    }
  }
  static_cast<void>(cudaGetLastError());  // clears cudaErrorNotReady
  std::erase_if(parked_, [](const auto& entry) { return entry.second.empty(); });
}

void Allocator::wait_for_parked() noexcept {
  for (auto& [stream, queue] : parked_) {
    for (const Parked& parked : queue) {
      static_cast<void>(cudaEventSynchronize(parked.event));
      event_passed(parked);
    }
  }
  parked_.clear();
}

/// Frees a block that is not cached, after waiting for its streams.
void Allocator::free_uncached(Block* block) noexcept {
  const DeviceGuard guard(device_, std::nothrow);
  static_cast<void>(cudaStreamSynchronize(block->stream));
  for (cudaStream_t stream : block->used_on) static_cast<void>(cudaStreamSynchronize(stream));
  drop_segment(block);
}

void Allocator::drop_segment(Block* block) noexcept {
  stats_.reserved -= block->bytes;
  --stats_.segments;
  static_cast<void>(cudaFree(block->p));
  delete block;
}

void Allocator::drop_free_segments() noexcept {
  const DeviceGuard guard(device_, std::nothrow);
  for (Pool* pool : {&small_, &large_}) {
    for (auto next = pool->free.begin(); next != pool->free.end();) {
      Block* block = *next;
      if (!block->is_whole()) {
        ++next;
        continue;
      }
      next = pool->free.erase(next);
      drop_segment(block);
    }
  }
}

/// Moves all blocks of one pool to another.
void Allocator::adopt(Pool& from, Pool& to) noexcept {
  const auto move = [&](Block* block) {
    if (block->pool == &from) block->pool = &to;
  };
  for (Block* block : from.free) move(block);
  for (const auto& [p, block] : live_) move(block);
  for (Block* block : late_) move(block);
  for (const auto& [stream, queue] : parked_) {
    for (const Parked& parked : queue) move(parked.block);
  }
  to.free.merge(from.free);
}

void Allocator::out_of_memory(std::size_t bytes, const char* why) {
  ++stats_.out_of_memories;
  std::size_t left = 0, total = 0;
  {
    const DeviceGuard guard(device_, std::nothrow);
    static_cast<void>(cudaMemGetInfo(&left, &total));
  }
  throw OutOfMemory(
      fmt::format("[memory] cuda:{}: {} asked for, {}: {} in {} live blocks (peak {}), {} taken from the device in {} "
                  "segments, cap "
                  "{}; the device has {}, of which {} are left. Use a smaller batch or model, or 16-bit precision{}.",
                  device_, human_bytes(bytes), why, human_bytes(stats_.allocated), stats_.live_blocks,
                  human_bytes(stats_.peak_allocated), human_bytes(stats_.reserved), stats_.segments,
                  stats_.cap > 0 ? human_bytes(stats_.cap) : "none", human_bytes(total), human_bytes(left),
                  stats_.cap > 0 ? ", or raise the cap" : ""));
}

namespace {

std::array<std::atomic<Allocator*>, kMaxDevices>& allocators() {
  static auto& all = *new std::array<std::atomic<Allocator*>, kMaxDevices>{};  // never destroyed, like their memory
  return all;
}

bool caching_wanted() {
  if (const char* text = std::getenv("LEVIN_CUDA_CACHING")) return std::string_view(text) != "0";
#if defined(__SANITIZE_ADDRESS__)
  return false;
#else
  return true;
#endif
}

}  // namespace

Allocator& allocator(int device) {
  static std::mutex mutex;
  if (device < 0 || device >= kMaxDevices) require_usable(device);
  std::atomic<Allocator*>& slot = allocators()[static_cast<std::size_t>(device)];
  if (Allocator* made = slot.load(std::memory_order_acquire)) return *made;
  require_usable(device);
  const std::lock_guard lock(mutex);
  if (!slot.load()) slot.store(new Allocator(device, caching_wanted()), std::memory_order_release);
  return *slot.load();
}

void empty_all_caches() {
  for (std::atomic<Allocator*>& slot : allocators()) {
    if (Allocator* made = slot.load(std::memory_order_acquire)) made->empty_cache();
  }
}

std::string human_bytes(std::size_t bytes) {
  constexpr const char* names[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.2f} {}", value, names[unit]);
}

std::string summary(int device, const levin::cuda::MemoryReport& r) {
  std::string text = fmt::format("cuda:{}, {}\n", device, describe_device(device));
  const auto line = [&](const char* name, const std::string& now, const std::string& peak) {
    text += fmt::format("  {:<22}{:>14}{:>14}\n", name, now, peak);
  };
  line("", "now", "peak");
  line("allocated", human_bytes(r.allocated), human_bytes(r.peak_allocated));
  line("reserved", human_bytes(r.reserved), human_bytes(r.peak_reserved));
  line("cap", r.cap > 0 ? human_bytes(r.cap) : "none", "");
  const auto count = [&](const char* name, std::size_t value) { line(name, fmt::format("{}", value), ""); };
  count("live blocks", r.live_blocks);
  count("parked blocks", r.parked_blocks);
  count("segments", r.segments);
  count("asked of the device", r.system_allocations);
  count("splits", r.splits);
  count("merges", r.merges);
  count("flushes and retries", r.retries);
  count("out of memory", r.out_of_memories);
  return text;
}

}  // namespace levin::kernels::cuda
