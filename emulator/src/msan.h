#pragma once
// What the memory sanitizer must be told: which memory nobody has written yet. All other memory counts as written, so
// that code which the sanitizer does not watch gives no false report. runtime/msan.cpp makes its reports those of the
// emulator.

#include <levin/emulator/execution.h>

#include <cstddef>
#include <cstdint>

namespace levin::emulator {

#if defined(LEVIN_EMULATOR_MSAN)
/// A number for a kind of memory, and the place of its declaration, that reports name.
std::uint32_t origin_of(const char* what, const Site* declared = nullptr);
void mark_unwritten(void* p, std::size_t bytes, std::uint32_t origin);
/// Code that is not watched calls code that is: what this thread passed last says nothing of that call.
void forget_parameters();
#else
inline std::uint32_t origin_of(const char*, const Site* = nullptr) { return 0; }
inline void mark_unwritten(void*, std::size_t, std::uint32_t) {}
inline void forget_parameters() {}
#endif

}  // namespace levin::emulator
