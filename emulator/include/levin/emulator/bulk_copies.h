#pragma once
// Copies of boxes of a tensor to shared memory by the copy engine (TMA), and the barriers in shared memory (mbarrier)
// that count their bytes. A copy completes when a thread tests its barrier, which is as late as a GPU may do it.

#include <levin/emulator/execution.h>

#include <cstddef>
#include <cstdint>

namespace levin::emulator {

/// A tensor of up to five axes, the innermost first, and the box that a copy moves. The box extends along the first two
/// axes; its rows, of at most 128 bytes, lie 128 bytes apart in shared memory with their chunks of 16 bytes permuted.
struct TensorMap {
  const unsigned char* base = nullptr;
  int element_bytes = 2;
  std::int64_t size[5] = {1, 1, 1, 1, 1};
  std::int64_t stride[5] = {};  ///< in bytes
  int box[2] = {1, 1};
};

/// mbarrier.init: a phase ends when `arrivals` threads have arrived and all expected bytes have been copied. Reported
/// errors of all functions: barriers outside of shared memory or not aligned to 8.
void barrier_init(std::uint64_t* barrier, int arrivals, Site site);
/// mbarrier.arrive, with expect_tx of `bytes`.
void barrier_arrive(std::uint64_t* barrier, int bytes, Site site);
/// mbarrier.try_wait.parity in a loop: waits until the phase of this parity has ended. A wait that nothing can end is
/// reported.
void barrier_wait(std::uint64_t* barrier, int parity, Site site);

/// cp.async.bulk.tensor: copies the box that begins at element `at` of each axis, zeros outside of the tensor, and
/// counts its bytes at the barrier. Reported errors: a destination that is not aligned to 1024 bytes of shared memory.
void copy_box(void* shared, const TensorMap& map, const int (&at)[5], std::uint64_t* barrier, Site site);

/// A copy that has been started.
struct BulkCopy {
  unsigned char* to;
  TensorMap map;
  int at[5];
  std::uint64_t* barrier;
};

}  // namespace levin::emulator
