#pragma once
// Leave for what a capture forbids a thread unless it says that it knows what it does.

#include <cuda_runtime.h>

namespace levin::kernels::cuda {

/// While it lives, this thread may take memory, load code and enable access although one of its streams is captured.
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
