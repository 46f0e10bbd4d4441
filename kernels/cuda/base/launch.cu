#include "kernels/cuda/base/launch.h"

#include "kernels/cuda/base/shared_memory.h"

namespace levin::kernels::cuda {

namespace {

/// A launch with at least this much dynamic shared memory calls allow_dynamic_shared: without it, static and dynamic
/// shared memory are limited to 48 KiB together, and the launcher does not know the size of the static part.
constexpr std::size_t kAskForShared = 32 * 1024;

}  // namespace

LaunchScope::LaunchScope(const void* kernel, const LaunchConfig& config)
    : range_(config.where.function_name()), guard_(config.stream.device().index) {
  if (config.shared >= kAskForShared) allow_dynamic_shared(kernel, config.stream.device().index);
  cluster_.id = cudaLaunchAttributeClusterDimension;
  cluster_.val.clusterDim.x = config.cluster.x;
  cluster_.val.clusterDim.y = config.cluster.y;
  cluster_.val.clusterDim.z = config.cluster.z;
  config_.gridDim = config.grid;
  config_.blockDim = config.block;
  config_.dynamicSmemBytes = config.shared;
  config_.stream = stream_of(config.stream);
  config_.attrs = &cluster_;
  config_.numAttrs = config.cluster.x * config.cluster.y * config.cluster.z > 1 ? 1 : 0;
}

LaunchScope::~LaunchScope() = default;

}  // namespace levin::kernels::cuda
