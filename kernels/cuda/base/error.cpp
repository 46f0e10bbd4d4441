#include "kernels/cuda/base/error.h"

#include <levin/core/error.h>

#include <fmt/format.h>

#if __has_include(<levin/emulator/devices.h>)
#include <levin/emulator/devices.h>
#endif

namespace levin::kernels::cuda {

namespace {

/// Returns the error of the running kernel or copy when the emulator stands in for the device.
std::string emulator_report() {
#if __has_include(<levin/emulator/devices.h>)
  return emulator::last_report();
#else
  return {};
#endif
}

const char* remedy(cudaError_t error) {
  switch (error) {
    case cudaErrorNoDevice:
      return "This machine has no device to use; use the cpu.";
    case cudaErrorInsufficientDriver:
      return "The NVIDIA driver is missing or older than this build needs; update it, or use the cpu.";
    case cudaErrorInvalidDevice:
      return "Choose a device below levin::cuda::device_count().";
    case cudaErrorNoKernelImageForDevice:
      return "This build holds no code for the device's architecture; use another device, or the cpu.";
    case cudaErrorInvalidConfiguration:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorInvalidClusterSize:
      return "The grid, the block or its shared memory is more than this device allows.";
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
      return "An earlier kernel may be the one that failed. The process must restart to use cuda again, but can go on "
             "with the cpu.";
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureMerge:
    case cudaErrorStreamCaptureUnmatched:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorCapturedEvent:
    case cudaErrorStreamCaptureWrongThread:
      return "While a graph is captured nothing may wait for the device, and every other stream must branch off the "
             "captured one and join it again.";
    default:
      return "Run again with CUDA_LAUNCH_BLOCKING=1 to see which call fails.";
  }
}

}  // namespace

void check_failed(cudaError_t error, const char* call) {
  static_cast<void>(cudaGetLastError());  // clears the error, which the next launch would report again
  const std::string report = emulator_report();
  std::string text = fmt::format("[cuda] {} failed with {}: {}.", call, cudaGetErrorName(error),
                                 report.empty() ? cudaGetErrorString(error) : report);
  if (text.ends_with("..")) text.pop_back();
  if (error == cudaErrorMemoryAllocation) {
    throw OutOfMemory(text + " There is no memory left for it; use a smaller batch or model.");
  }
  throw DeviceError(text + " " + remedy(error));
}

}  // namespace levin::kernels::cuda
