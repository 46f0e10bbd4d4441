#include "kernels/cuda/device/peers.h"

#include "kernels/cuda/device/driver.h"
#include "kernels/cuda/device/relaxed_capture.h"

#include <atomic>
#include <cstdint>

namespace levin::kernels::cuda {

void enable_peer_access(int from, int to) noexcept {
  static std::atomic<std::uint64_t> asked[kMaxDevices];  // by the first device; one bit per second device
  const std::uint64_t bit = std::uint64_t{1} << to;
  if (asked[from].load(std::memory_order_relaxed) & bit) return;
  const DeviceGuard guard(from, std::nothrow);
  const RelaxedCapture relaxed;
  int can = 0;
  if (cudaDeviceCanAccessPeer(&can, from, to) == cudaSuccess && can != 0) {
    static_cast<void>(cudaDeviceEnablePeerAccess(to, 0));  // it may be enabled already, or there are too many peers
  }
  static_cast<void>(cudaGetLastError());
  asked[from].fetch_or(bit, std::memory_order_relaxed);
}

}  // namespace levin::kernels::cuda
