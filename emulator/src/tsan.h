#pragma once
// Tells the thread sanitizer which waits order memory and which accesses are not made by a kernel. To it each thread of
// a block is a separate thread, which starts after the launch and ends before the launch does. Only the operations that
// order threads on the GPU order it with others.

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

/// Everything before release(p) is visible after acquire(p).
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

/// Ignores the running thread's accesses from here on, also in library calls and other compile units.
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

/// Marks the scope of the engine's own work. A thread that yields within it is watched until it resumes, because the
/// sanitizer needs the two calls in pairs and some threads never resume.
class Unwatched {
 public:
  Unwatched() { stop_watching(); }
  ~Unwatched() { go_on_watching(); }
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
};

/// Alternating tags for the rounds of one barrier: a thread that has entered the next round must not seem ordered
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
