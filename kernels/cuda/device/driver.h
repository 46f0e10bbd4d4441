#pragma once
// The driver and its devices, with clear messages if none can be used.

#include <levin/core/device.h>

#include <cuda_runtime.h>

#include <new>

namespace levin::kernels::cuda {

inline constexpr int kMaxDevices = 64;
inline constexpr int kOldestMajor = 8;  ///< compute capability 8.0, the oldest that kernels are compiled for

/// Returns the number of usable devices; 0 without driver, without device, or if all are too old. Never throws.
int device_count() noexcept;
/// Returns in one sentence why device_count() is 0; empty if it is not.
const std::string& why_unavailable();
/// Throws DeviceError, in one sentence, unless the device exists and is new enough.
void require_usable(int index);
/// Returns the current device for -1, otherwise `index`; throws as require_usable does.
int resolve_device(int index);
const cudaDeviceProp& device_properties(int index);
/// Returns one line for people.
std::string describe_device(int index);

namespace detail {
/// Returns the sentence for the result of a device query. `driver` and `runtime` are CUDA version numbers such as
/// 13000.
std::string absence_sentence(cudaError_t error, int driver, int runtime);
std::string too_old_sentence(int index, const char* name, int major, int minor);
}  // namespace detail

/// Makes a device current in this thread during its lifetime.
class DeviceGuard {
 public:
  explicit DeviceGuard(int index);
  /// Ignores errors: for functions that must not throw, on a device that may have failed.
  DeviceGuard(int index, std::nothrow_t) noexcept;
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int former_ = 0, index_;
};

}  // namespace levin::kernels::cuda
