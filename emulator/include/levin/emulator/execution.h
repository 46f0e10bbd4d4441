#pragma once
// How the built-ins of CUDA C++ (threads' indices, barriers, warp instructions) reach the block that runs the calling
// kernel. A block's threads are fibers of one thread of the host, so nothing here needs a lock; blocks of a grid may
// run on several threads of the host.

#include <levin/emulator/async_copy.h>
#include <levin/emulator/vector_types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>

namespace levin::emulator {

/// Where in a kernel's source something was called; shown in reports.
using Site = std::source_location;

/// What all fibers of one kernel launch share.
struct Config {
  std::uint64_t seed =
      0;            ///< order of threads, warps and blocks, and the moments of asynchronous effects; 0: as numbered
  int workers = 0;  ///< threads of the host that run blocks; 0: one a core
};
/// Read from LEVIN_EMULATOR_SEED and LEVIN_EMULATOR_WORKERS at first use; tests change it between launches.
Config& config();

/// Ends the running kernel: its launch fails with `what`, the kernel's name, block, thread and the site. For checks of
/// the emulator itself; throws through the fiber.
[[noreturn]] void fail(const std::string& what, Site site);
/// fail() for a vector access at an address that is no multiple of its `alignment`; on a device it ends the kernel with
/// cudaErrorMisalignedAddress, and here too.
[[noreturn]] void fail_misaligned(const void* p, std::size_t alignment, Site site);
/// True in code of a kernel, false in code of the host.
bool in_kernel();

/// The block's array of this declaration, the same for all its threads; filled with bytes 0xff (NaN in every floating
/// type) when the block begins. `key` is an address of its own for each declaration.
void* shared_array(const void* key, std::size_t bytes, std::size_t alignment, Site site);
/// The block's dynamic shared memory, aligned to 1024 bytes.
void* dynamic_shared_memory(Site site);
std::size_t dynamic_shared_bytes();

/// Waits until `threads` of the block's threads (0: all) have come to barrier `id` (0 to 15). All must come from the
/// same place when they are all the block's: a barrier in divergent code is reported.
void block_barrier(const char* name, int id, int threads, Site site);
/// A barrier of the whole block at which the last thread to come calls run(operands of all threads, how many).
void block_collective(const char* name, void* operands, void (*run)(void* const* operands, int count), Site site);
/// A barrier of all threads of the cluster.
void cluster_barrier(const char* name, Site site);

/// What the lanes of `mask` do together: the last to come calls run(operands by lane, null where the lane is not in the
/// mask; mask). Reported: a lane outside its own mask, lanes that ended, lanes that wait in different instructions.
using WarpFunction = void (*)(void* const* operands, std::uint32_t mask);
void warp_collective(const char* name, std::uint32_t mask, void* operands, WarpFunction run, Site site);
/// Lanes of this warp that have not ended.
std::uint32_t live_lanes();
/// This thread's place in its warp: its number in the block modulo 32.
int lane();
/// This thread's number in its block, x fastest.
int thread_number();

/// Other threads may run now: for loops that wait for memory to change.
void yield_thread();

/// The calling thread's copies under way (cp.async).
AsyncCopies& async_copies();

/// Of the running cluster.
int cluster_rank();
int cluster_size();
/// The address in the shared memory of the cluster's block `rank` that corresponds to `p` in this block's.
void* map_shared(const void* p, int rank, Site site);
/// True when `p` lies in the calling block's shared memory.
bool is_shared(const void* p);

/// The most shared memory that any architecture gives to a block (sm_90), and what a kernel gets that did not ask for
/// more with cudaFuncAttributeMaxDynamicSharedMemorySize.
inline constexpr std::size_t kMostSharedBytes = 227 * 1024, kUsualSharedBytes = 48 * 1024;

/// A grid to run: `body` is one thread's call of the kernel.
struct Launch {
  const char* kernel = "kernel";
  dim3 grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  std::size_t shared_bytes = 0;                 ///< of dynamic shared memory
  std::size_t shared_limit = kMostSharedBytes;  ///< for a block's arrays and its dynamic shared memory together
  /// Grows to what one block's arrays take, as the kernel declares them; may be null.
  std::atomic<std::size_t>* array_bytes = nullptr;
  void (*body)(void* context) = nullptr;
  void* context = nullptr;
};
/// Runs all threads of the grid to their end. Returns what failed first, or an empty text.
std::string run_grid(const Launch& launch);

}  // namespace levin::emulator
