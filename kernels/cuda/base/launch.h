#pragma once
// launch(kernel, {.grid = ..., .block = ..., .stream = stream}, args...) is the only way to launch a kernel.

#include "kernels/cuda/base/cuda.h"
#include "kernels/cuda/base/error.h"
#include "kernels/cuda/base/range.h"
#include "kernels/cuda/device/driver.h"

#include <levin/core/device.h>

#include <source_location>
#include <utility>

namespace levin::kernels::cuda {

inline cudaStream_t stream_of(const Stream& s) { return static_cast<cudaStream_t>(s.handle()); }

struct LaunchConfig {
  dim3 grid{1}, block{1}, cluster{1};
  std::size_t shared = 0;  ///< size of dynamic shared memory in bytes
  const Stream& stream;
  std::source_location where = std::source_location::current();  ///< the launching function, shown by profilers
};

/// Returns the number of blocks of `threads` for `n` items: at most a few waves of the device; grid-stride loops do the
/// rest.
inline unsigned blocks_for(std::int64_t n, int threads = 256) {
  constexpr std::int64_t most = 132 * 16;
  const std::int64_t blocks = ceil_div(n, threads);
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

/// The part of a launch that does not depend on the kernel's parameters: a profiler's range, the stream's device as the
/// current one until the scope ends, the kernel's permission to use its shared memory, and CUDA's form of the
/// configuration.
class LaunchScope {
 public:
  LaunchScope(const void* kernel, const LaunchConfig& config);
  LaunchScope(const LaunchScope&) = delete;
  LaunchScope& operator=(const LaunchScope&) = delete;
  ~LaunchScope();

  const cudaLaunchConfig_t* config() const { return &config_; }

 private:
  ProfilerRange range_;
  DeviceGuard guard_;
  cudaLaunchAttribute cluster_{};
  cudaLaunchConfig_t config_{};
};

/// Launches the kernel on the stream and its device. Arguments are converted to the kernel's parameter types. An empty
/// grid launches nothing. Throws DeviceError if the launch fails.
template <class... P, class... A>
void launch(void (*kernel)(P...), const LaunchConfig& c, A&&... args) {
  if (c.grid.x == 0 || c.grid.y == 0 || c.grid.z == 0) return;
  const LaunchScope scope(reinterpret_cast<const void*>(kernel), c);
  check(cudaLaunchKernelEx(scope.config(), kernel, P(std::forward<A>(args))...), "launch");
}

}  // namespace levin::kernels::cuda
