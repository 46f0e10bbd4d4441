#pragma once
// What the thread sanitizer must be told: which waits order memory, and which do not.

#if defined(LEVIN_EMULATOR_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace levin::emulator {

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

}  // namespace levin::emulator
