#include "kernels/cuda/base/shared_memory.h"

#include "kernels/cuda/base/error.h"
#include "kernels/cuda/device/driver.h"

#include <cuda_runtime.h>

#include <mutex>
#include <set>
#include <utility>

namespace levin::kernels::cuda {

void allow_dynamic_shared(const void* kernel, int device) {
  static std::mutex mutex;
  static std::set<std::pair<const void*, int>> allowed;
  const std::lock_guard lock(mutex);
  if (allowed.count({kernel, device}) > 0) return;
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
  const std::size_t most = device_properties(device).sharedMemPerBlockOptin - attributes.sharedSizeBytes;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most)),
        "cudaFuncSetAttribute");
  allowed.emplace(kernel, device);
}

}  // namespace levin::kernels::cuda
