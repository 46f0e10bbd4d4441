#pragma once
// CUDA as a device of core.

#include <levin/core/device.h>

#include <atomic>

namespace levin::kernels::cuda {

/// The one backend, which lives for ever. Its source registers it when the program starts.
DeviceBackend* backend();

/// Between the host and a device, between two devices, or on one; see DeviceBackend::copy. From the host it returns
/// when the source was read (at once from a page-locked tensor), to the host when the destination is written, otherwise
/// at once.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes,
                const Stream& stream);

/// See levin::cuda::fill_uninitialized_memory().
std::atomic<bool>& fills_new_memory();

}  // namespace levin::kernels::cuda
