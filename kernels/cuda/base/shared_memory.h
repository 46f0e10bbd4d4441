#pragma once
// How much shared memory a kernel may have.

namespace levin::kernels::cuda {

/// Lets the kernel have as much dynamic shared memory as a block of the device has beside the kernel's arrays. Asks
/// once for each kernel and device, from any thread.
void allow_dynamic_shared(const void* kernel, int device);

}  // namespace levin::kernels::cuda
