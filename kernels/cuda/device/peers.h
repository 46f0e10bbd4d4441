#pragma once
// Access between the memories of two devices.

namespace levin::kernels::cuda {

/// Enables access from one device's kernels and copies to the other's memory if the machine supports it, once per pair;
/// otherwise CUDA copies through the host.
void enable_peer_access(int from, int to) noexcept;

}  // namespace levin::kernels::cuda
