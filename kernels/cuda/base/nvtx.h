#pragma once
// Named ranges on the profiler's time line (Nsight Systems), where the toolkit has NVTX; otherwise nothing.

#if __has_include(<nvtx3/nvToolsExt.h>) && !__has_include(<levin/emulator/devices.h>)
#include <nvtx3/nvToolsExt.h>
#define LEVIN_HAS_NVTX 1
#else
#define LEVIN_HAS_NVTX 0
#endif

namespace levin::kernels::cuda {

/// A range from here to the end of the scope, in this thread. Costs next to nothing while no profiler listens.
class NvtxRange {
 public:
#if LEVIN_HAS_NVTX
  explicit NvtxRange(const char* name) { nvtxRangePushA(name); }
  ~NvtxRange() { nvtxRangePop(); }
#else
  explicit NvtxRange(const char*) {}
  ~NvtxRange() {}  // so that a range that is only declared counts as used
#endif
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

}  // namespace levin::kernels::cuda
