#pragma once
// Tells the memory sanitizer which memory is unwritten. All other memory counts as written, so that uninstrumented code
// causes no false reports. runtime/msan.cpp turns the sanitizer's reports into those of the emulator.

#include <levin/emulator/execution.h>

#include <cstddef>
#include <cstdint>

namespace levin::emulator {

#if defined(LEVIN_EMULATOR_MSAN)
/// Returns an origin id for a kind of memory and the place of its declaration, which reports name.
std::uint32_t origin_of(const char* what, const Site* declared = nullptr);
void mark_unwritten(void* p, std::size_t bytes, std::uint32_t origin);
/// Ends the tracking of memory that is given back to the system. An allocation of uninstrumented code may get the same
/// addresses, and what such code writes is not tracked.
void mark_written(const void* p, std::size_t bytes);
/// Clears the sanitizer's record of the parameters this thread passed last. Needed where uninstrumented code calls
/// instrumented code.
void forget_parameters();
#else
inline std::uint32_t origin_of(const char*, const Site* = nullptr) { return 0; }
inline void mark_unwritten(void*, std::size_t, std::uint32_t) {}
inline void mark_written(const void*, std::size_t) {}
inline void forget_parameters() {}
#endif

}  // namespace levin::emulator
