#pragma once
// launch(kernel, {.grid = ..., .block = ..., .stream = stream}, args...) is the only way to launch a kernel.

#include "kernels/cuda/base/cuda.h"
#include "kernels/cuda/base/error.h"
#include "kernels/cuda/base/range.h"
#include "kernels/cuda/base/shared_memory.h"
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

/// A launch with at least this much dynamic shared memory calls allow_dynamic_shared: without it, static and dynamic
/// shared memory are limited to 48 KiB together, and the launcher does not know the size of the static part.
inline constexpr std::size_t kAskForShared = 32 * 1024;

/// Launches the kernel on the stream and its device. Arguments are converted to the kernel's parameter types. An empty
/// grid launches nothing. Throws DeviceError if the launch fails.
template <class... P, class... A>
void launch(void (*kernel)(P...), const LaunchConfig& c, A&&... args) {
  if (c.grid.x == 0 || c.grid.y == 0 || c.grid.z == 0) return;
  const ProfilerRange range(c.where.function_name());
  const DeviceGuard guard(c.stream.device().index);
  if (c.shared >= kAskForShared) {
    allow_dynamic_shared(reinterpret_cast<const void*>(kernel), c.stream.device().index);
  }
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = c.cluster.x;
  attribute.val.clusterDim.y = c.cluster.y;
  attribute.val.clusterDim.z = c.cluster.z;
  cudaLaunchConfig_t config{};
  config.gridDim = c.grid;
  config.blockDim = c.block;
  config.dynamicSmemBytes = c.shared;
  config.stream = stream_of(c.stream);
  config.attrs = &attribute;
  config.numAttrs = c.cluster.x * c.cluster.y * c.cluster.z > 1 ? 1 : 0;
  check(cudaLaunchKernelEx(&config, kernel, P(std::forward<A>(args))...), "launch");
}

}  // namespace levin::kernels::cuda
