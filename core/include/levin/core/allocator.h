#pragma once
// The CPU's caching allocator: 64-byte aligned blocks kept in bins by size, so that a steady training step asks the
// system for nothing.

#include <levin/core/device.h>

namespace levin {

/// Control of the CPU allocator. All functions may be called from any thread.
namespace cpu_allocator {

void* allocate(std::size_t bytes);                      ///< throws OutOfMemory; 0 bytes give a valid pointer
void free(void* p, std::size_t bytes) noexcept;         ///< `bytes` as asked for
MemoryStats stats();
void reset_peak();
void empty_cache();
/// Highest `allocated` that is allowed, 0 for no cap. An allocation beyond it throws OutOfMemory.
void set_cap(std::size_t bytes);
/// With guards on, every new block stands between two zones of a known pattern; a block whose zones were written to
/// makes `guard_violations` grow when it is freed. For tests.
void set_guards(bool on);
std::size_t guard_violations();

}  // namespace cpu_allocator
}  // namespace levin
