#pragma once
// The CPU's caching allocator: 64-byte aligned blocks are kept in bins by size, so that a training step in steady state
// makes no system allocations.

#include <levin/core/device.h>

namespace levin {

/// Control of the CPU allocator. All functions act on the whole process and may be called from any thread.
namespace cpu_allocator {

/// Returns uninitialized memory, 64-byte aligned; 0 bytes return a valid pointer. Throws OutOfMemory.
void* allocate(std::size_t bytes);
/// Returns a block to the cache; `bytes` as passed to allocate(). A null pointer is allowed.
void free(void* p, std::size_t bytes) noexcept;
/// Returns the counters; `allocated` and its peak include the rounding of blocks up to their bins' sizes.
MemoryStats stats();
/// Sets the peak to the memory that is allocated now.
void reset_peak();
/// Returns cached blocks to the system, those of other threads' caches excepted.
void empty_cache();
/// Sets the maximum of `allocated`, in bytes; 0 removes the cap. An allocation beyond it throws OutOfMemory.
void set_cap(std::size_t bytes);
/// Turns guards on or off, for tests. With guards on, every new block lies between two zones of a known pattern, and
/// freeing a block whose zones were overwritten increments `guard_violations`.
void set_guards(bool on);
/// Returns the number of freed blocks whose zones had been overwritten.
std::size_t guard_violations();

}  // namespace cpu_allocator
}  // namespace levin
