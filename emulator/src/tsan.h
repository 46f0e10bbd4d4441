#pragma once
// What the thread sanitizer must be told: which waits order memory, and which accesses are none of a kernel's. To it
// each thread of a block is a thread of its own, ordered behind the launch and before its end, and nothing else orders
// it but what orders threads on the chip.

#if defined(LEVIN_EMULATOR_TSAN)
#include <sanitizer/tsan_interface.h>
extern "C" {
void __tsan_ignore_thread_begin();
void __tsan_ignore_thread_end();
}
#endif

namespace levin::emulator {

#if defined(LEVIN_EMULATOR_TSAN)
inline constexpr bool kThreadSanitizerOn = true;
#else
inline constexpr bool kThreadSanitizerOn = false;
#endif

/// All that happened before release(p) is seen after acquire(p).
inline void order_release([[maybe_unused]] const void* tag) {
#if defined(LEVIN_EMULATOR_TSAN)
  __tsan_release(const_cast<void*>(tag));
#endif
}
inline void order_acquire([[maybe_unused]] const void* tag) {
#if defined(LEVIN_EMULATOR_TSAN)
  __tsan_acquire(const_cast<void*>(tag));
#endif
}

/// From here on, what the running thread touches is not looked at, in library calls and other compile units too.
inline void stop_watching() {
#if defined(LEVIN_EMULATOR_TSAN)
  __tsan_ignore_thread_begin();
#endif
}
inline void go_on_watching() {
#if defined(LEVIN_EMULATOR_TSAN)
  __tsan_ignore_thread_end();
#endif
}

/// The engine's own work, for as long as this lives. A thread that gives way in it is watched until it comes back: the
/// sanitizer wants the two calls in pairs, and some threads never come back.
class Unwatched {
 public:
  Unwatched() { stop_watching(); }
  ~Unwatched() { go_on_watching(); }
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
};

/// Tags for the rounds of one barrier, used in turn: a thread that has gone on to the next round must not look ordered
/// before those that have yet to leave this one.
class RoundTags {
 public:
  const void* now() const { return &tags_[round_ % sizeof tags_]; }
  void next() { ++round_; }

 private:
  char tags_[4] = {};
  unsigned round_ = 0;
};

}  // namespace levin::emulator
