// The thread sanitizer must attribute a copy to the thread that waits for it, not to the scheduler that completes it.
// This compile unit is therefore not instrumented, copies without library calls, and reports the accesses to the
// sanitizer when the thread starts the copy and when it waits for it. An access in between is a race.

#include <levin/emulator/async_copy.h>

#include "tsan.h"

#if defined(LEVIN_EMULATOR_TSAN)
extern "C" {
void __tsan_read_range(void* address, unsigned long bytes);
void __tsan_write_range(void* address, unsigned long bytes);
}
#endif

namespace levin::emulator {

namespace {

void note_accesses([[maybe_unused]] void* to, [[maybe_unused]] std::size_t bytes, [[maybe_unused]] const void* from,
                   [[maybe_unused]] std::size_t source_bytes) {
#if defined(LEVIN_EMULATOR_TSAN)
  __tsan_write_range(to, bytes);
  if (source_bytes != 0) __tsan_read_range(const_cast<void*>(from), source_bytes);
#endif
}

}  // namespace

void AsyncCopies::begin(void* to, const void* from, std::size_t bytes, std::size_t source_bytes) {
  note_accesses(to, bytes, from, source_bytes);
  auto* words = static_cast<volatile std::uint32_t*>(to);
  for (std::size_t i = 0; i < bytes / 4; ++i) words[i] = 0xffffffffu;
  const auto* source = static_cast<const volatile unsigned char*>(from);
  if (source_bytes != 0) {  // reports an address out of bounds here, in the thread's own code
    (void)source[0];
    (void)source[source_bytes - 1];
  }
  const Unwatched unwatched;
  copies_.push_back({to, from, bytes, source_bytes, groups_, false});
}

void AsyncCopies::land(Copy& copy) {
  auto* to = static_cast<volatile std::uint32_t*>(copy.to);
  const auto* from = static_cast<const volatile std::uint32_t*>(copy.from);
  const std::size_t whole = copy.source_bytes / 4;
  for (std::size_t i = 0; i < whole; ++i) to[i] = from[i];
  for (std::size_t i = whole; i < copy.bytes / 4; ++i) to[i] = 0;
  const auto* last = static_cast<const volatile unsigned char*>(copy.from);
  auto* tail = static_cast<volatile unsigned char*>(copy.to);
  for (std::size_t i = 4 * whole; i < copy.source_bytes; ++i) tail[i] = last[i];
  copy.landed = true;
}

/// Groups complete in the order of their commits, so the completed copies are a prefix of the list.
void AsyncCopies::end_before(int group) {
  std::size_t ended = 0;
  while (ended < copies_.size() && copies_[ended].group < group) {
    Copy& copy = copies_[ended++];
    if (!copy.landed) land(copy);
    note_accesses(copy.to, copy.bytes, copy.from, copy.source_bytes);
  }
  const Unwatched unwatched;
  copies_.erase(copies_.begin(), copies_.begin() + static_cast<std::ptrdiff_t>(ended));
}

void AsyncCopies::commit() { ++groups_; }

void AsyncCopies::wait(int pending) { end_before(groups_ - pending); }

void AsyncCopies::wait_all() { end_before(++groups_); }

void AsyncCopies::progress(std::uint64_t random) {
  int shift = 0;
  for (Copy& copy : copies_) {
    if (!copy.landed && (random >> shift & 3) == 3) land(copy);
    shift = (shift + 2) % 64;
  }
}

}  // namespace levin::emulator
