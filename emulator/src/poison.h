#pragma once
// Tells the address sanitizer which memory may be accessed; no effect without it.

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define LEVIN_EMULATOR_ASAN 1
#endif
#if defined(LEVIN_EMULATOR_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace levin::emulator {

inline void poison([[maybe_unused]] const void* p, [[maybe_unused]] std::size_t bytes) {
#if defined(LEVIN_EMULATOR_ASAN)
  __asan_poison_memory_region(p, bytes);
#endif
}
inline void unpoison([[maybe_unused]] const void* p, [[maybe_unused]] std::size_t bytes) {
#if defined(LEVIN_EMULATOR_ASAN)
  __asan_unpoison_memory_region(p, bytes);
#endif
}

}  // namespace levin::emulator
