#pragma once
// Detection of uninitialised memory in the build with the memory sanitizer (preset emulate-msan); no effect elsewhere.
// The sanitizer tracks such values through loads, arithmetic and stores by itself, but not through atomic functions.

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define LEVIN_EMULATOR_FOLLOWS_VALUES 1
#endif
#endif

namespace levin::emulator {

#if defined(LEVIN_EMULATOR_FOLLOWS_VALUES)
/// Ends the kernel with a report if the value at `p`, which an atomic function is about to update, is uninitialised.
void check_atomic_operand(const void* p, std::size_t bytes);
#else
inline void check_atomic_operand(const void*, std::size_t) {}
#endif

}  // namespace levin::emulator
