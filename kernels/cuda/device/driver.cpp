#include "kernels/cuda/device/driver.h"

#include "kernels/cuda/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace levin::kernels::cuda {

namespace {

std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

/// Result of the first query; it does not change during a process.
struct Machine {
  std::vector<cudaDeviceProp> devices;
  int driver = 0, runtime = 0;
  std::string problem;  ///< the reason why no device can be used

  Machine() {
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
    if (cudaRuntimeGetVersion(&runtime) != cudaSuccess) runtime = 0;
    for (int i = 0; error == cudaSuccess && i < std::min(count, kMaxDevices); ++i) {
      error = cudaGetDeviceProperties(&devices.emplace_back(), i);
    }
    if (error == cudaSuccess && count == 0) error = cudaErrorNoDevice;
    if (error != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      problem = detail::absence_sentence(error, driver, runtime);
    } else if (std::none_of(devices.begin(), devices.end(), [](const auto& d) { return d.major >= kOldestMajor; })) {
      problem = detail::too_old_sentence(0, devices[0].name, devices[0].major, devices[0].minor);
    }
    if (!problem.empty()) devices.clear();
  }
};

const Machine& machine() {
  static const Machine& m = *new Machine;  // never destroyed: tensors may outlive main
  return m;
}

}  // namespace

namespace detail {

std::string absence_sentence(cudaError_t error, int driver, int runtime) {
  if (driver == 0) return "[cuda] this machine has no NVIDIA driver. Install it, or use the cpu.";
  if (error == cudaErrorInsufficientDriver) {
    return fmt::format("[cuda] the NVIDIA driver is for CUDA {}, but this build needs {}. Update it, or use the cpu.",
                       version(driver), version(runtime));
  }
  if (error == cudaErrorNoDevice) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return fmt::format("[cuda] the NVIDIA driver sees no device{}. Use the cpu.",
                       visible ? fmt::format(" (CUDA_VISIBLE_DEVICES is \"{}\")", visible) : std::string());
  }
  return fmt::format("[cuda] the devices cannot be used: {} ({}). Use the cpu.", cudaGetErrorName(error),
                     cudaGetErrorString(error));
}

std::string too_old_sentence(int index, const char* name, int major, int minor) {
  return fmt::format(
      "[cuda] cuda:{} ({}) is too old: it has architecture sm_{}{}, and sm_{}0 or newer is needed. Use another device, "
      "or the cpu.",
      index, name, major, minor, kOldestMajor);
}

}  // namespace detail

int device_count() noexcept { return static_cast<int>(machine().devices.size()); }

const std::string& why_unavailable() { return machine().problem; }

void require_usable(int index) {
  const Machine& m = machine();
  if (!m.problem.empty()) throw DeviceError(m.problem);
  if (index < 0 || index >= device_count()) {
    throw DeviceError(fmt::format("[cuda] cuda:{} does not exist: this machine has {} cuda device{}, counted from 0.",
                                  index, device_count(), device_count() == 1 ? "" : "s"));
  }
  const cudaDeviceProp& d = m.devices[static_cast<std::size_t>(index)];
  if (d.major < kOldestMajor) throw DeviceError(detail::too_old_sentence(index, d.name, d.major, d.minor));
}

int resolve_device(int index) {
  if (index == -1) {
    if (!why_unavailable().empty()) throw DeviceError(why_unavailable());
    check(cudaGetDevice(&index), "cudaGetDevice");
  }
  require_usable(index);
  return index;
}

const cudaDeviceProp& device_properties(int index) {
  require_usable(index);
  return machine().devices[static_cast<std::size_t>(index)];
}

std::string describe_device(int index) {
  const cudaDeviceProp& d = device_properties(index);
  constexpr double gib = 1024.0 * 1024.0 * 1024.0;
  return fmt::format("{}: sm_{}{}, {} multiprocessors, {:.1f} GiB, CUDA {} (driver {})", d.name, d.major, d.minor,
                     d.multiProcessorCount, static_cast<double>(d.totalGlobalMem) / gib, version(machine().runtime),
                     version(machine().driver));
}

DeviceGuard::DeviceGuard(int index) : index_(index) {
  check(cudaGetDevice(&former_), "cudaGetDevice");
  if (index_ != former_) check(cudaSetDevice(index_), "cudaSetDevice");
}

DeviceGuard::DeviceGuard(int index, std::nothrow_t) noexcept : index_(index) {
  if (cudaGetDevice(&former_) != cudaSuccess) former_ = index_;
  static_cast<void>(cudaSetDevice(index_));
}

DeviceGuard::~DeviceGuard() {
  if (index_ != former_) static_cast<void>(cudaSetDevice(former_));
}

}  // namespace levin::kernels::cuda
