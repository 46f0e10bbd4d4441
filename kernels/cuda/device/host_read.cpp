// Copies single numbers to page-locked memory, in the stream's order; an event tells when they have arrived.

#include "kernels/src/host_read.h"

#include "kernels/cuda/base/error.h"
#include "kernels/cuda/device/driver.h"
#include "kernels/cuda/device/pinned.h"
#include "kernels/cuda/device/streams.h"

#include <cstring>

namespace levin::kernels {

namespace cuda {

namespace {

class PinnedRead final : public HostRead::Pending {
 public:
  PinnedRead(const Tensor& tensor, std::size_t bytes)
      : device_(tensor.device().index), stream_(current_stream(device_)), buffer_(pinned_pool().take(bytes)) {
    const DeviceGuard guard(device_);
    try {
      passed_ = event_pool().take(device_);
      check(cudaMemcpyAsync(buffer_.p, tensor.raw_data(), bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
      check(cudaEventRecord(passed_, stream_), "cudaEventRecord");
    } catch (...) {
      give_back();
      throw;
    }
  }
  ~PinnedRead() override {
    try {
      give_back();
    } catch (const DeviceError&) {  // the device has failed
    }
  }
  PinnedRead(const PinnedRead&) = delete;
  PinnedRead& operator=(const PinnedRead&) = delete;

  bool ready() override {
    if (arrived_) return true;
    const cudaError_t status = cudaEventQuery(passed_);
    if (status == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());  // clears cudaErrorNotReady
      return false;
    }
    check(status, "cudaEventQuery");
    return arrived_ = true;
  }

  void copy_to(void* to, std::size_t bytes) override {
    if (!ready()) check(cudaEventSynchronize(passed_), "cudaEventSynchronize");
    arrived_ = true;
    std::memcpy(to, buffer_.p, bytes);
  }

 private:
  void give_back() {
    if (passed_) event_pool().put_back(device_, passed_);
    pinned_pool().put_back(buffer_, device_, stream_);
  }

  int device_;
  cudaStream_t stream_;
  PinnedPool::Buffer buffer_;
  cudaEvent_t passed_ = nullptr;
  bool arrived_ = false;
};

}  // namespace

}  // namespace cuda

std::unique_ptr<HostRead::Pending> begin_host_read(const Tensor& tensor, std::size_t bytes) {
  if (tensor.device().type != levin::DeviceType::cuda) return nullptr;
  return std::make_unique<cuda::PinnedRead>(tensor, bytes);
}

}  // namespace levin::kernels
