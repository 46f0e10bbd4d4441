#pragma once
// The CPU's caching allocator: 64-byte aligned blocks are kept in bins by size, so that a training step in steady state
// makes no system allocations.

#include <levin/core/device.h>

namespace levin {

/// Control of the CPU allocator. All functions may be called from any thread.
namespace cpu_allocator {

void* allocate(std::size_t bytes);                      ///< throws OutOfMemory; 0 bytes return a valid pointer
void free(void* p, std::size_t bytes) noexcept;         ///< `bytes` as passed to allocate()
MemoryStats stats();
void reset_peak();
void empty_cache();
/// Sets the maximum of `allocated`; 0 removes the cap. An allocation beyond it throws OutOfMemory.
void set_cap(std::size_t bytes);
/// Turns guards on or off, for tests. With guards on, every new block lies between two zones of a known pattern, and
/// freeing a block whose zones were overwritten increments `guard_violations`.
void set_guards(bool on);
std::size_t guard_violations();

}  // namespace cpu_allocator
}  // namespace levin
