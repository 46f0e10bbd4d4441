#pragma once
// Indices and labels out of range. The kernel that meets one reports it in memory that the host can read, skips it and
// continues: no launcher waits for the device, so a whole training step can be queued or captured into a graph. The
// host throws when it waits anyway: when a result is copied to the host (item(), cpu()) and when a device, a stream or
// an event is waited for. Results computed in between are invalid.

#include <levin/core/shape.h>
#include <levin/core/tensor_view.h>

namespace levin::kernels::cuda {

struct IndexGate;
struct IndexReport;

/// The arguments with which a kernel refuses a value, passed by value: a graph has its own copy. `op` lives as long as
/// the process.
struct IndexGuard {
  IndexGate* gate = nullptr;      ///< in device memory
  IndexReport* report = nullptr;  ///< in host memory
  const char* op = "";
  std::int64_t size = 0;     ///< values in [0, size) are valid
  std::int64_t ignored = 0;  ///< so is this value, for labels
  bool labels = false;
  std::uint32_t ticket = 0;  ///< counts launches: the earliest one is reported
  int dims = 0;              ///< number of axes of the index, whose sizes follow
  std::int64_t sizes[kMaxDims] = {};
};

/// Returns a guard for an index of these sizes with values in [0, size), or for labels, which may also be `ignored`.
IndexGuard index_guard(const char* op, const Shape& sizes, std::int64_t size, const Stream& stream);
IndexGuard label_guard(const char* op, const Shape& sizes, std::int64_t classes, std::int64_t ignored,
                       const Stream& stream);

/// Launches a kernel that only checks values: for an index that no kernel, or not a single one, reads.
void check_values(const TensorView& index, const IndexGuard& guard, Stream& stream);

/// Called after the host has waited for the device: throws IndexError, with the message of the CPU's kernels, if a
/// kernel has refused a value since the last call. Of several refusals the first of the earliest launch is named.
void throw_refused_index(int device);

}  // namespace levin::kernels::cuda
