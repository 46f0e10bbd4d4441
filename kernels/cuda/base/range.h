#pragma once
// Ranges shown on the timeline of NVIDIA's profilers (NVTX 3). The library is header-only: unless a profiler has
// announced itself in the environment, a range costs a comparison with null, and nothing is opened.

#if defined(__CUDACC__)
#include <nvtx3/nvToolsExt.h>
#endif

namespace levin::kernels::cuda {

/// Marks a range from construction to destruction under this name, which the profiler copies. Emulated devices have no
/// profiler.
class ProfilerRange {
 public:
#if defined(__CUDACC__)
  explicit ProfilerRange(const char* name) { static_cast<void>(nvtxRangePushA(name)); }
  ~ProfilerRange() { static_cast<void>(nvtxRangePop()); }
#else
  explicit ProfilerRange(const char*) {}
#endif
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

}  // namespace levin::kernels::cuda
