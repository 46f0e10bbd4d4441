#pragma once
// Memory that nobody has written yet, in the build with the memory sanitizer (preset emulate-msan); nothing elsewhere.
// The sanitizer follows such values through loads, arithmetic and stores by itself, but not through atomic functions.

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define LEVIN_EMULATOR_FOLLOWS_VALUES 1
#endif
#endif

namespace levin::emulator {

#if defined(LEVIN_EMULATOR_FOLLOWS_VALUES)
/// Ends the kernel with a report where the value at `p`, which an atomic function is about to write, is uninitialised.
void check_atomic_operand(const void* p, std::size_t bytes);
#else
inline void check_atomic_operand(const void*, std::size_t) {}
#endif

}  // namespace levin::emulator
