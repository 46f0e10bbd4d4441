#pragma once
// The limit of a kernel's shared memory.

namespace levin::kernels::cuda {

/// Allows the kernel all the dynamic shared memory that a block of the device has left beside the kernel's static
/// arrays. Calls CUDA once per kernel and device; thread-safe.
void allow_dynamic_shared(const void* kernel, int device);

}  // namespace levin::kernels::cuda
