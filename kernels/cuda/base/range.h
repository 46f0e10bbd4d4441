#pragma once
// Ranges that NVIDIA's profilers show on their time line (NVTX 3). The library is header-only: without a profiler,
// which announces itself in the environment, a range is a comparison with null; nothing is opened.

#if defined(__CUDACC__)
#include <nvtx3/nvToolsExt.h>
#endif

namespace levin::kernels::cuda {

/// From construction to destruction, under this name, which the profiler copies. Emulated devices have no profiler.
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
