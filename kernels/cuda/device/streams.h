#pragma once
// Each device's streams, and which of them a thread uses.

#include <levin/core/device.h>

#include <cuda_runtime.h>

#include <mutex>
#include <vector>

namespace levin::kernels::cuda {

/// The stream that threads use unless told otherwise. It is one of our own, as CUDA's legacy default stream cannot be
/// captured; it is made a blocking one, so that code of others on the legacy stream (a plain cudaMemcpy on a tensor's
/// memory) still runs in order with it.
cudaStream_t default_stream(int device);
/// The next of 32 non-blocking streams. Streams are never destroyed: memory remembers the stream it belongs to.
cudaStream_t next_pooled_stream(int device);
/// This thread's stream.
cudaStream_t current_stream(int device);
/// Null: the default stream again.
void set_current_stream(int device, cudaStream_t stream);

/// The stream's handle where it is one of this device, otherwise this thread's stream of it.
cudaStream_t stream_on(int device, const Stream& stream);
inline Stream as_stream(int device, cudaStream_t stream) { return Stream(levin::cuda(device), stream); }

/// Events without times, kept for use again.
class EventPool {
 public:
  /// An event of the current device.
  cudaEvent_t take(int device);
  void put_back(int device, cudaEvent_t event) noexcept;

 private:
  std::mutex mutex_;
  std::vector<std::vector<cudaEvent_t>> free_;  // by device
};
EventPool& event_pool();

/// Later work of `later` waits for what is queued on `earlier` now; they may belong to different devices.
void order_streams(int earlier_device, cudaStream_t earlier, int later_device, cudaStream_t later);

}  // namespace levin::kernels::cuda
