#pragma once
// The emulator's own controls over its devices, for tests and for messages: CUDA has nothing of the kind.
//
// The environment, read at first use:
//   LEVIN_EMULATED_DEVICES        how many devices there are (1)
//   LEVIN_EMULATED_MEMORY         MiB that each of them has (2048)
//   LEVIN_EMULATED_ARCHITECTURE   their compute capability (9.0)
//   LEVIN_EMULATOR_SEED           order in which queued work runs; 0: what a wait needs and no more, the oldest first
//   LEVIN_EMULATOR_PROTECT=0      device memory stays open to the host's code
//   LEVIN_EMULATOR_RED_ZONES=0    the zones round allocations are looked at when memory is freed, not after each kernel
//   LEVIN_EMULATOR_LEAKS=1        what is alive when the program ends is listed on standard error
//   LEVIN_EMULATOR_LAUNCHES=FILE  a line for each kernel that was launched is added to it when the program ends:
//   symbol,
//                                 most threads of a block, most dynamic shared memory, bytes of its arrays

#include <cstddef>
#include <string>
#include <vector>

namespace levin::emulator {

/// What failed last, in a sentence or more: a kernel, a copy, a refused call. Empty when nothing has.
std::string last_report();

/// Forgets errors (sticky ones too), queued work and captures; memory, streams and events stay.
void clear_errors();
/// Back to the beginning: clear_errors, and all memory, streams, events and graphs are freed. Returns one sentence for
/// each allocation, stream or event that was alive and for each red zone that was overwritten.
std::vector<std::string> reset();
/// reset(), then other devices: `count` of them with `megabytes` each.
void reset_devices(int count, std::size_t megabytes);
/// The compute capability that devices tell.
void set_architecture(int major, int minor);

/// One sentence for each live allocation of device or pinned memory, stream, event and graph.
std::vector<std::string> leaked_allocations();
/// One sentence for each live allocation whose red zones were overwritten. Finds nothing under the address sanitizer,
/// which stops at the write itself.
std::vector<std::string> damaged_allocations();

/// Pieces of work that wait in queues.
std::size_t queued_work();
/// How often device memory was opened for work and closed again.
std::size_t memory_openings();
/// How many calls made the host wait for queued work (synchronising calls, copies to pageable memory, cudaFree), also
/// those that found nothing to wait for. Queries don't wait.
std::size_t host_waits();
/// How often cudaFuncSetAttribute gave a kernel more dynamic shared memory.
std::size_t shared_requests();

}  // namespace levin::emulator
