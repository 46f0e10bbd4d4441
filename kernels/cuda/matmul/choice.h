#pragma once
// The properties of a product by which a kernel is chosen.

#include "kernels/cuda/base/error.h"

#include <levin/core/device.h>

#include <cstdint>

namespace levin::kernels::cuda {

/// Returns an attribute of the stream's device.
inline int attribute_of(const Stream& stream, cudaDeviceAttr attribute) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, attribute, stream.device().index), "cudaDeviceGetAttribute");
  return value;
}

/// True if a block of the device may have that much shared memory.
inline bool has_shared(const Stream& stream, std::size_t bytes) {
  return static_cast<std::size_t>(attribute_of(stream, cudaDevAttrMaxSharedMemoryPerBlockOptin)) >= bytes;
}

}  // namespace levin::kernels::cuda
