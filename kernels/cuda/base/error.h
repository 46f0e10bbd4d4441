#pragma once
// CUDA error codes as Levin's exceptions.

#include <cuda_runtime.h>

namespace levin::kernels::cuda {

/// Throws OutOfMemory if memory is the reason, else DeviceError, with the name of the call and CUDA's message.
void check_failed(cudaError_t error, const char* call);

inline void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) check_failed(error, call);
}

}  // namespace levin::kernels::cuda
