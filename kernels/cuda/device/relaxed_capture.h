#pragma once
// Permission for calls that a capture forbids unless the thread selects the relaxed mode.

#include <cuda_runtime.h>

namespace levin::kernels::cuda {

/// During its lifetime this thread may allocate memory, load code and enable peer access while one of its streams is
/// captured.
class RelaxedCapture {
 public:
  RelaxedCapture() noexcept { exchange(); }
  ~RelaxedCapture() { exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  void exchange() noexcept { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace levin::kernels::cuda
