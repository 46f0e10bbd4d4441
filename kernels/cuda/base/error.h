#pragma once
// CUDA's error codes as Levin's exceptions.

#include <cuda_runtime.h>

namespace levin::kernels::cuda {

/// Throws DeviceError, or OutOfMemory where that is the reason, with the call's name and CUDA's own words.
void check_failed(cudaError_t error, const char* call);

inline void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) check_failed(error, call);
}

}  // namespace levin::kernels::cuda
