// CUDA's names and descriptions of errors, and each thread's last error.

#include "state.h"

using namespace levin::emulator;

namespace {

struct Words {
  cudaError_t error;
  const char *name, *text;
};

#define LEVIN_WORDS(error, text) \
  Words { error, #error, text }
constexpr Words kWords[] = {
    LEVIN_WORDS(cudaSuccess, "no error"),
    LEVIN_WORDS(cudaErrorInvalidValue, "invalid argument"),
    LEVIN_WORDS(cudaErrorMemoryAllocation, "out of memory"),
    LEVIN_WORDS(cudaErrorInitializationError, "initialization error"),
    LEVIN_WORDS(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    LEVIN_WORDS(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    LEVIN_WORDS(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    LEVIN_WORDS(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    LEVIN_WORDS(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    LEVIN_WORDS(cudaErrorInvalidDeviceFunction, "invalid device function"),
    LEVIN_WORDS(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    LEVIN_WORDS(cudaErrorInvalidDevice, "invalid device ordinal"),
    LEVIN_WORDS(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"),
    LEVIN_WORDS(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices"),
    LEVIN_WORDS(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    LEVIN_WORDS(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    LEVIN_WORDS(cudaErrorNotReady, "device not ready"),
    LEVIN_WORDS(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    LEVIN_WORDS(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    LEVIN_WORDS(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    LEVIN_WORDS(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    LEVIN_WORDS(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    LEVIN_WORDS(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"),
    LEVIN_WORDS(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    LEVIN_WORDS(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    LEVIN_WORDS(cudaErrorMisalignedAddress, "misaligned address"),
    LEVIN_WORDS(cudaErrorLaunchFailure, "unspecified launch failure"),
    LEVIN_WORDS(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    LEVIN_WORDS(cudaErrorNotPermitted, "operation not permitted"),
    LEVIN_WORDS(cudaErrorNotSupported, "operation not supported"),
    LEVIN_WORDS(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    LEVIN_WORDS(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    LEVIN_WORDS(cudaErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences"),
    LEVIN_WORDS(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    LEVIN_WORDS(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    LEVIN_WORDS(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    LEVIN_WORDS(cudaErrorStreamCaptureImplicit, "operation would make the legacy stream depend on a capturing stream"),
    LEVIN_WORDS(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"),
    LEVIN_WORDS(cudaErrorStreamCaptureWrongThread, "attempt to terminate a thread-local capture from another thread"),
    LEVIN_WORDS(cudaErrorInvalidClusterSize, "cluster misconfiguration"),
    LEVIN_WORDS(cudaErrorUnknown, "unknown error"),
};
#undef LEVIN_WORDS

const Words* find_words(cudaError_t error) {
  for (const Words& w : kWords) {
    if (w.error == error) return &w;
  }
  return nullptr;
}

/// Returns the current device's sticky error, else the thread's last error.
cudaError_t present_error() {
  Runtime& rt = runtime();
  const Lock lock(rt.mutex);
  const auto device = static_cast<std::size_t>(this_thread().device);
  const cudaError_t sticky = device < rt.devices.size() ? rt.devices[device].error : cudaSuccess;
  return sticky != cudaSuccess ? sticky : this_thread().last_error;
}

}  // namespace

cudaError_t cudaPeekAtLastError() { return present_error(); }

cudaError_t cudaGetLastError() {
  const cudaError_t error = present_error();
  this_thread().last_error = cudaSuccess;
  return error;
}

const char* cudaGetErrorName(cudaError_t error) {
  const Words* w = find_words(error);
  return w ? w->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const Words* w = find_words(error);
  return w ? w->text : "unrecognized error code";
}
