#pragma once
// CUDA as a device backend of core.

#include <levin/core/device.h>

#include <atomic>

namespace levin::kernels::cuda {

/// Returns the only backend, which is never destroyed. Its source file registers it when the program starts.
DeviceBackend* backend();

/// Copies between host and device, between two devices, or within one; see DeviceBackend::copy. A copy from the host
/// returns when the source has been read (at once for page-locked tensors), a copy to the host when the destination is
/// written, any other at once.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes,
                const Stream& stream);

/// See levin::cuda::fill_uninitialized_memory().
std::atomic<bool>& fills_new_memory();

}  // namespace levin::kernels::cuda
