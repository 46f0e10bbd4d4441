#pragma once
// The driver and its devices, with clear messages where there is nothing to use.

#include <levin/core/device.h>

#include <cuda_runtime.h>

#include <new>

namespace levin::kernels::cuda {

inline constexpr int kMaxDevices = 64;
inline constexpr int kOldestMajor = 8;  ///< compute capability 8.0, the oldest that kernels are compiled for

/// Devices to choose from; 0 without driver, without device, or when all are too old. Never throws.
int device_count() noexcept;
/// Why device_count() is 0, in one sentence; empty when it is not.
const std::string& why_unavailable();
/// Throws DeviceError, in one sentence, unless the device exists and is not too old.
void require_usable(int index);
/// The current device for -1, otherwise `index`; throws as require_usable.
int resolve_device(int index);
const cudaDeviceProp& device_properties(int index);
/// One line for people.
std::string describe_device(int index);

namespace detail {
/// The sentence for what asking for devices gave. `driver` and `runtime` are versions as CUDA numbers them: 13000.
std::string absence_sentence(cudaError_t error, int driver, int runtime);
std::string too_old_sentence(int index, const char* name, int major, int minor);
}  // namespace detail

/// Makes a device current in this thread until the guard goes.
class DeviceGuard {
 public:
  explicit DeviceGuard(int index);
  /// Ignores errors: for what must not throw, on a device that may have failed.
  DeviceGuard(int index, std::nothrow_t) noexcept;
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int former_ = 0, index_;
};

}  // namespace levin::kernels::cuda
