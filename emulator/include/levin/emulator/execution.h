#pragma once
// Connects the built-ins of CUDA C++ (thread indices, barriers, warp instructions) to the block that runs the calling
// kernel. A block's threads are fibers of one host thread, so nothing here needs a lock; blocks of a grid may run on
// several host threads.

#include <levin/emulator/async_copy.h>
#include <levin/emulator/group_products.h>
#include <levin/emulator/vector_types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>

namespace levin::emulator {

/// A place in a kernel's source, shown in reports.
using Site = std::source_location;

/// Settings of kernel launches.
struct Config {
  std::uint64_t seed =
      0;            ///< seed of the order of threads, warps and blocks and of asynchronous effects; 0: in order
  int workers = 0;  ///< host threads that run blocks; 0: one per core
};
/// Returns the settings, which are read from LEVIN_EMULATOR_SEED and LEVIN_EMULATOR_WORKERS at first use. Tests change
/// them between launches.
Config& config();

/// Ends the running kernel. Its launch fails with `what`, the kernel's name, block and thread, and the site. Used by
/// checks of the emulator itself; throws through the fiber.
[[noreturn]] void fail(const std::string& what, Site site);
/// Calls fail() for a vector access at an address that is not a multiple of its `alignment`; as on a GPU, the kernel
/// ends with cudaErrorMisalignedAddress.
[[noreturn]] void fail_misaligned(const void* p, std::size_t alignment, Site site);
/// True in kernel code, false in host code.
bool in_kernel();

/// Returns the block's shared array of this declaration, the same for all its threads. It is filled with bytes 0xff
/// (NaN in every floating type) when the block starts. `key` is an address that is unique to each declaration.
void* shared_array(const void* key, std::size_t bytes, std::size_t alignment, Site site);
/// Returns the block's dynamic shared memory, aligned to 1024 bytes.
void* dynamic_shared_memory(Site site);
std::size_t dynamic_shared_bytes();

/// Waits until `threads` of the block's threads (0: all) have arrived at barrier `id` (0 to 15). If all threads of the
/// block take part they must arrive from the same place; a barrier in divergent code is reported.
void block_barrier(const char* name, int id, int threads, Site site);
/// A barrier of the whole block at which the last thread to arrive calls run(operands of all threads, their number).
void block_collective(const char* name, void* operands, void (*run)(void* const* operands, int count), Site site);
/// Waits for all threads of the cluster.
void cluster_barrier(const char* name, Site site);

/// The collective work of the lanes in `mask`: the last lane to arrive calls run(operands by lane, null for lanes
/// outside of the mask; mask). Reported errors: a lane outside of its own mask, lanes that have exited, lanes that wait
/// in different instructions. If `orders`, the lanes' accesses to memory before it are ordered before those after it.
using WarpFunction = void (*)(void* const* operands, std::uint32_t mask);
void warp_collective(const char* name, std::uint32_t mask, void* operands, WarpFunction run, Site site,
                     bool orders = false);
/// Returns the mask of this warp's lanes that have not exited.
std::uint32_t live_lanes();
/// Returns this thread's lane in its warp: its number in the block modulo 32.
int lane();
/// Returns this thread's number in its block, x fastest.
int thread_number();

/// Lets other threads run, for loops that wait for memory to change.
void yield_thread();

/// Returns the calling thread's asynchronous copies (cp.async).
AsyncCopies& async_copies();
/// Returns the calling thread's asynchronous products (wgmma).
GroupProducts& group_products();

/// Properties of the running cluster.
int cluster_rank();
int cluster_size();
/// Returns the address in the shared memory of the cluster's block `rank` that corresponds to `p` in this block's.
void* map_shared(const void* p, int rank, Site site);
/// True if `p` lies in the calling block's shared memory.
bool is_shared(const void* p);

/// The maximum of shared memory per block on any architecture (sm_90), and the limit of a kernel that has not raised it
/// with cudaFuncAttributeMaxDynamicSharedMemorySize.
inline constexpr std::size_t kMostSharedBytes = 227 * 1024, kUsualSharedBytes = 48 * 1024;

/// A grid to run. `body` calls the kernel for one thread.
struct Launch {
  const char* kernel = "kernel";
  dim3 grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  std::size_t shared_bytes = 0;                 ///< bytes of dynamic shared memory
  std::size_t shared_limit = kMostSharedBytes;  ///< limit of a block's arrays and its dynamic shared memory together
  /// Raised to the bytes of one block's arrays as the kernel declares them; may be null.
  std::atomic<std::size_t>* array_bytes = nullptr;
  void (*body)(void* context) = nullptr;
  void* context = nullptr;
};
/// Runs all threads of the grid to their end. Returns the first failure, or an empty string.
std::string run_grid(const Launch& launch);

}  // namespace levin::emulator
