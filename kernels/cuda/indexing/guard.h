#pragma once
// Indices and labels out of range. The kernel that meets one tells of it in memory that the host can read, does without
// it and goes on: no launcher waits for the device, so a whole training step can be queued, or captured into a graph.
// The host throws where it waits anyway: when a result comes to the host (item(), cpu()) and when a device, a stream or
// an event is waited for. What was computed in between is not to be used.

#include <levin/core/shape.h>
#include <levin/core/tensor_view.h>

namespace levin::kernels::cuda {

struct IndexGate;
struct IndexReport;

/// The arguments with which a kernel refuses a value, passed by value: a graph holds its own. `op` lives as long as the
/// process.
struct IndexGuard {
  IndexGate* gate = nullptr;      ///< in the device's memory
  IndexReport* report = nullptr;  ///< in the host's memory
  const char* op = "";
  std::int64_t size = 0;     ///< values in [0, size) are good
  std::int64_t ignored = 0;  ///< and this one, of labels
  bool labels = false;
  std::uint32_t ticket = 0;  ///< counts launches: the earliest one is told of
  int dims = 0;              ///< of the index, whose sizes these are
  std::int64_t sizes[kMaxDims] = {};
};

/// For an index of some sizes whose values have to be in [0, size); for labels, which may also be `ignored`.
IndexGuard index_guard(const char* op, const Shape& sizes, std::int64_t size, const Stream& stream);
IndexGuard label_guard(const char* op, const Shape& sizes, std::int64_t classes, std::int64_t ignored,
                       const Stream& stream);

/// A kernel that does nothing but refuse: for an index of which nothing is read, or not by one kernel alone.
void check_values(const TensorView& index, const IndexGuard& guard, Stream& stream);

/// After the host waited for the device: throws IndexError, in the words of the CPU's kernels, when one of its kernels
/// refused a value since the last time. Of several the earliest launch's first is named.
void throw_refused_index(int device);

}  // namespace levin::kernels::cuda
