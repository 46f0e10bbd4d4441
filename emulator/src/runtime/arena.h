#pragma once
// One device's memory: a range of addresses that is backed by pages as it grows and is inaccessible unless work runs.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace levin::emulator {

inline constexpr std::size_t kZoneBytes = 256;  ///< size of the red zone on each side of an allocation
inline constexpr std::size_t kNearBytes = 64;   ///< part of a zone that is checked after each kernel

struct Allocation {
  char* data = nullptr;
  std::size_t bytes = 0;
};

class Arena {
 public:
  Arena(std::size_t capacity, bool protect);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Make the memory accessible or inaccessible. Return false if it already was.
  bool open();
  void close();
  bool is_open() const { return open_; }

  /// Returns new memory between red zones, filled with bytes 0xff, or null if there is no room. The arena must be open.
  void* allocate(std::size_t bytes);
  /// Frees the allocation at p and returns whether its red zones were intact; no value if no allocation begins there.
  std::optional<bool> free(void* p);

  bool contains(const void* p) const { return p >= base_ && p < base_ + reserved_; }
  /// Returns the live allocation that contains p, or null.
  const Allocation* find(const void* p) const;
  /// Returns the first allocation whose red zones are damaged: checks the parts next to the data, or all of them.
  const Allocation* damaged(bool whole) const;
  /// Rewrites its red zones, so that damage is reported once.
  void mend(const Allocation& a);
  const std::map<std::size_t, Allocation>& live() const { return live_; }

  std::size_t capacity() const { return capacity_; }
  std::size_t used() const { return used_; }
  const char* base() const { return base_; }
  std::size_t reserved() const { return reserved_; }

 private:
  bool commit(std::size_t end);
  static bool zones_whole(const Allocation& a, std::size_t width);

  char* base_ = nullptr;
  std::size_t capacity_, reserved_ = 0, committed_ = 0, top_ = 0, used_ = 0;
  std::map<std::size_t, Allocation> live_;    ///< keyed by the offset of the first zone
  std::map<std::size_t, std::size_t> holes_;  ///< bytes by offset
  bool protect_, open_ = false;
};

/// Returns how much of the capacity an allocation of `bytes` uses.
std::size_t rounded(std::size_t bytes);

}  // namespace levin::emulator
