#pragma once
// Devices that reach each other's memory.

namespace levin::kernels::cuda {

/// Lets kernels and copies of the one device reach the other's memory where the machine can do that, once a pair of
/// devices; otherwise copies between them go through the host by themselves.
void enable_peer_access(int from, int to) noexcept;

}  // namespace levin::kernels::cuda
