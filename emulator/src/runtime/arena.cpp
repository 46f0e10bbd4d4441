#include "arena.h"

#include "../poison.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <new>

namespace levin::emulator {

namespace {

constexpr std::size_t kAlign = 512, kChunk = std::size_t{2} << 20;
constexpr unsigned char kZone = 0xCB, kFresh = 0xFF;

std::size_t up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

#if defined(LEVIN_EMULATOR_ASAN)
constexpr bool kZonesByPattern = false;  // the sanitizer reports the access itself
#else
constexpr bool kZonesByPattern = true;
#endif

/// The red zone after the data extends to the next multiple of kAlign.
std::size_t footprint(std::size_t bytes) { return up(kZoneBytes + bytes + kZoneBytes, kAlign); }

constexpr auto kPattern = [] {
  std::array<unsigned char, kZoneBytes> zone{};
  zone.fill(kZone);
  return zone;
}();

/// True if `bytes` of a zone, at most kZoneBytes, are intact.
bool holds(const void* p, std::size_t bytes) { return std::memcmp(p, kPattern.data(), bytes) == 0; }

}  // namespace

std::size_t rounded(std::size_t bytes) { return up(std::max<std::size_t>(bytes, 1), kAlign); }

Arena::Arena(std::size_t capacity, bool protect) : capacity_(capacity), protect_(protect) {
  // Red zones and holes use addresses, not capacity. Huge pages make opening and closing cheap.
  reserved_ = up(capacity * 3 + (std::size_t{64} << 20), kChunk);
  void* p = mmap(nullptr, reserved_ + kChunk, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  char* const begin = static_cast<char*>(p);
  base_ = reinterpret_cast<char*>(up(reinterpret_cast<std::uintptr_t>(p), kChunk));
  if (base_ > begin) munmap(begin, static_cast<std::size_t>(base_ - begin));
  if (const auto rest = static_cast<std::size_t>(begin + kChunk - base_)) munmap(base_ + reserved_, rest);
  madvise(base_, reserved_, MADV_HUGEPAGE);
}

Arena::~Arena() {
  unpoison(base_, committed_);
  munmap(base_, reserved_);
}

bool Arena::open() {
  if (open_) return false;
  open_ = true;
  if (protect_ && committed_ > 0) mprotect(base_, committed_, PROT_READ | PROT_WRITE);
  return true;
}

void Arena::close() {
  if (!open_) return;
  open_ = false;
  if (protect_ && committed_ > 0) mprotect(base_, committed_, PROT_NONE);
}

bool Arena::commit(std::size_t end) {
  if (end <= committed_) return true;
  end = up(end, kChunk);
  if (end > reserved_) return false;
  if (mprotect(base_ + committed_, end - committed_, PROT_READ | PROT_WRITE) != 0) return false;
  poison(base_ + committed_, end - committed_);
  committed_ = end;
  return true;
}

void* Arena::allocate(std::size_t bytes) {
  if (bytes > capacity_ || rounded(bytes) > capacity_ - used_) return nullptr;
  const std::size_t size = footprint(bytes);
  std::size_t offset = top_;
  auto hole = std::find_if(holes_.begin(), holes_.end(), [&](const auto& h) { return h.second >= size; });
  if (hole != holes_.end()) {
    offset = hole->first;
    const std::size_t rest = hole->second - size;
    holes_.erase(hole);
    if (rest > 0) holes_[offset + size] = rest;
  } else {
    if (!commit(top_ + size)) return nullptr;
    top_ += size;
  }
  Allocation a{base_ + offset + kZoneBytes, bytes};
  unpoison(base_ + offset, size);
  if (kZonesByPattern) {
    std::memset(base_ + offset, kZone, kZoneBytes);
    std::memset(a.data + bytes, kZone, size - kZoneBytes - bytes);
  }
  std::memset(a.data, kFresh, bytes);
  poison(base_ + offset, kZoneBytes);
  poison(a.data + bytes, size - kZoneBytes - bytes);
  live_[offset] = a;
  used_ += rounded(bytes);
  return a.data;
}

std::optional<bool> Arena::free(void* p) {
  if (!contains(p)) return std::nullopt;
  const auto offset = static_cast<std::size_t>(static_cast<char*>(p) - base_) - kZoneBytes;
  const auto it = live_.find(offset);
  if (it == live_.end()) return std::nullopt;
  const Allocation a = it->second;
  std::size_t begin = offset, size = footprint(a.bytes);
  const bool whole = zones_whole(a, kZoneBytes);
  if (kZonesByPattern) std::memset(a.data, kFresh, a.bytes);
  poison(base_ + begin, size);
  live_.erase(it);
  used_ -= rounded(a.bytes);
  // Adjacent holes are merged; a hole at the end is returned to the free range.
  auto next = holes_.lower_bound(begin);
  if (next != holes_.end() && begin + size == next->first) {
    size += next->second;
    next = holes_.erase(next);
  }
  if (next != holes_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      size += before->second;
      holes_.erase(before);
    }
  }
  if (begin + size == top_) {
    top_ = begin;
  } else {
    holes_[begin] = size;
  }
  return whole;
}

const Allocation* Arena::find(const void* p) const {
  if (!contains(p)) return nullptr;
  auto it = live_.upper_bound(static_cast<std::size_t>(static_cast<const char*>(p) - base_));
  if (it == live_.begin()) return nullptr;
  const Allocation& a = std::prev(it)->second;
  return p >= a.data && (p < a.data + a.bytes || p == a.data) ? &a : nullptr;
}

bool Arena::zones_whole(const Allocation& a, std::size_t width) {
  return !kZonesByPattern || (holds(a.data - width, width) && holds(a.data + a.bytes, width));
}

const Allocation* Arena::damaged(bool whole) const {
  if (!kZonesByPattern) return nullptr;
  for (const auto& [offset, a] : live_) {
    if (!zones_whole(a, whole ? kZoneBytes : kNearBytes)) return &a;
  }
  return nullptr;
}

void Arena::mend(const Allocation& a) {
  std::memcpy(a.data - kZoneBytes, kPattern.data(), kZoneBytes);
  std::memcpy(a.data + a.bytes, kPattern.data(), kZoneBytes);
}

}  // namespace levin::emulator
