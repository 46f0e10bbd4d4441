#include "replay_memory.h"

#include <levin/core/allocator.h>

#include <algorithm>

namespace levin {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kFirst = std::size_t{16} << 10, kLargest = std::size_t{16} << 20;  // sizes of segments, in bytes

}  // namespace

ReplayMemory::~ReplayMemory() {
  for (const Segment& s : segments_) cpu_allocator::free(s.begin, s.size);
}

void* ReplayMemory::allocate(std::size_t bytes) {
  const std::size_t size = std::max((bytes + kAlignment - 1) / kAlignment * kAlignment, kAlignment);
  const std::lock_guard lock(mutex_);
  auto best = free_.end();
  for (auto range = free_.begin(); range != free_.end(); ++range)
    if (range->second >= size && (best == free_.end() || range->second < best->second)) best = range;
  if (best == free_.end()) {
    const std::size_t doubled = segments_.empty() ? kFirst : std::min(2 * segments_.back().size, kLargest);
    const std::size_t whole = std::max(size, doubled);
    auto* begin = static_cast<std::byte*>(cpu_allocator::allocate(whole));
    segments_.push_back({begin, whole});
    best = free_.emplace(begin, whole).first;
  }
  const auto [begin, whole] = *best;
  free_.erase(best);
  if (whole > size) free_.emplace(begin + size, whole - size);
  used_.emplace(begin, size);
  return begin;
}

void ReplayMemory::free(void* p) noexcept {
  const std::lock_guard lock(mutex_);
  if (!planning_) return;
  auto node = used_.extract(static_cast<std::byte*>(p));  // moved between the maps, so nothing is allocated
  auto [range, done, rest] = free_.insert(std::move(node));
  const auto starts_segment = [this](const std::byte* at) {
    return std::ranges::any_of(segments_, [at](const Segment& s) { return s.begin == at; });
  };
  if (const auto next = std::next(range);
      next != free_.end() && range->first + range->second == next->first && !starts_segment(next->first)) {
    range->second += next->second;
    free_.erase(next);
  }
  if (range == free_.begin() || starts_segment(range->first)) return;
  if (const auto before = std::prev(range); before->first + before->second == range->first) {
    before->second += range->second;
    free_.erase(range);
  }
}

void ReplayMemory::plan(bool on) {
  const std::lock_guard lock(mutex_);
  planning_ = on;
}

bool ReplayMemory::owns(const void* p) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(segments_, [p](const Segment& s) { return p >= s.begin && p < s.begin + s.size; });
}

std::size_t ReplayMemory::bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const Segment& s : segments_) sum += s.size;
  return sum;
}

}  // namespace levin
