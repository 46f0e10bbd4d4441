#pragma once
// One device's memory: a range of addresses, given pages as it grows, closed to everybody unless work runs.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace levin::emulator {

inline constexpr std::size_t kZoneBytes = 256;  ///< before and behind each allocation
inline constexpr std::size_t kNearBytes = 64;   ///< of a zone, next to the allocation: looked at after each kernel

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

  /// Lets code touch the memory, or lets none. Returns false when that was so already.
  bool open();
  void close();
  bool is_open() const { return open_; }

  /// New memory, filled with bytes 0xff, between red zones; null when there is no room. The arena must be open.
  void* allocate(std::size_t bytes);
  /// Frees what begins at p and returns whether its red zones were whole; no value when nothing begins there.
  std::optional<bool> free(void* p);

  bool contains(const void* p) const { return p >= base_ && p < base_ + reserved_; }
  /// The live allocation that holds p.
  const Allocation* find(const void* p) const;
  /// The first whose red zones are damaged: the parts next to the data, or all.
  const Allocation* damaged(bool whole) const;
  /// Writes its red zones anew: damage is reported once.
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
  std::map<std::size_t, Allocation> live_;    ///< by offset of the first zone
  std::map<std::size_t, std::size_t> holes_;  ///< offset, bytes
  bool protect_, open_ = false;
};

/// What an allocation of `bytes` takes of the capacity.
std::size_t rounded(std::size_t bytes);

}  // namespace levin::emulator
