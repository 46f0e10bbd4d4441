#pragma once
// How a kernel reports an invalid index or label.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/indexing/guard.h"

namespace levin::kernels::cuda {

/// All bits are set until a value is refused.
struct IndexGate {
  unsigned long long first;  ///< ticket and place of the refusal to report
  unsigned lock;             ///< of the report; all bits set if open
};

struct IndexReport {
  unsigned written;
  IndexGuard guard;
  std::int64_t value, place;
};

inline constexpr unsigned kGateOpen = ~0u;
inline constexpr int kPlaceBits = 40;

__device__ inline bool is_index(std::int64_t value, std::int64_t size) {
  return static_cast<std::uint64_t>(value) < static_cast<std::uint64_t>(size);
}

/// Reports the value, unless an earlier refusal has been reported.
__device__ inline void refuse(const IndexGuard& g, std::int64_t value, std::int64_t place) {
  const unsigned long long mine =
      static_cast<unsigned long long>(g.ticket) << kPlaceBits | static_cast<unsigned long long>(place);
  if (atomicMin(&g.gate->first, mine) <= mine) return;
  for (bool done = false; !done;) {
    if (atomicCAS(&g.gate->lock, kGateOpen, 0u) != kGateOpen) continue;
    __threadfence();
    if (atomicMin(&g.gate->first, mine) == mine) {  // an earlier refusal may have come meanwhile
      g.report->guard = g;
      g.report->value = value;
      g.report->place = place;
      __threadfence_system();
      g.report->written = 1;
    }
    __threadfence();
    atomicExch(&g.gate->lock, kGateOpen);
    done = true;
  }
}

/// True if the value at the index's place is in range; reports it otherwise, unless it is the ignored label.
__device__ inline bool admits(const IndexGuard& g, std::int64_t value, std::int64_t place) {
  if (is_index(value, g.size)) return true;
  if (!g.labels || value != g.ignored) refuse(g, value, place);
  return false;
}

}  // namespace levin::kernels::cuda
