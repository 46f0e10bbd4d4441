#pragma once
// The emulator's own controls over its devices, for tests and for messages; CUDA has no counterpart.
//
// The environment, read at first use:
//   LEVIN_EMULATED_DEVICES        number of devices (1)
//   LEVIN_EMULATED_MEMORY         MiB of memory per device (2048)
//   LEVIN_EMULATED_ARCHITECTURE   compute capability of the devices (9.0)
//   LEVIN_EMULATOR_SEED           order in which queued work runs; 0: only the work that a wait needs, oldest first
//   LEVIN_EMULATOR_PROTECT=0      leaves device memory accessible to host code
//   LEVIN_EMULATOR_RED_ZONES=0    checks an allocation's red zones when it is freed instead of after each kernel
//   LEVIN_EMULATOR_LEAKS=1        lists live allocations on standard error when the program ends
//   LEVIN_EMULATOR_LAUNCHES=FILE  appends a line for each launched kernel when the program ends: symbol, most threads
//                                 of a block, most dynamic shared memory, bytes of its arrays

#include <cstddef>
#include <string>
#include <vector>

namespace levin::emulator {

/// Returns a sentence or more about the last failure (a kernel, a copy, a refused call), or an empty string.
std::string last_report();

/// Clears errors (also sticky ones), queued work and captures; memory, streams and events stay.
void clear_errors();
/// Restores the initial state: clear_errors, and all memory, streams, events and graphs are freed. Returns one sentence
/// for each allocation, stream or event that was alive and for each red zone that was overwritten.
std::vector<std::string> reset();
/// Calls reset() and replaces the devices by `count` devices with `megabytes` each.
void reset_devices(int count, std::size_t megabytes);
/// Sets the compute capability that the devices report.
void set_architecture(int major, int minor);

/// Returns one sentence for each live allocation of device or pinned memory, stream, event and graph.
std::vector<std::string> leaked_allocations();
/// Returns one sentence for each live allocation whose red zones were overwritten. Finds nothing under the address
/// sanitizer, which stops at the write itself.
std::vector<std::string> damaged_allocations();

/// Returns the number of operations that wait in queues.
std::size_t queued_work();
/// Returns how often device memory was opened for work and closed again.
std::size_t memory_openings();
/// Returns how many calls made the host wait for queued work (synchronising calls, copies to pageable memory,
/// cudaFree), including those that found nothing to wait for. Queries do not wait.
std::size_t host_waits();
/// Returns how often cudaFuncSetAttribute raised a kernel's limit of dynamic shared memory.
std::size_t shared_requests();

}  // namespace levin::emulator
