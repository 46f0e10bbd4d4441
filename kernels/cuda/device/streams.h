#pragma once
// Each device's streams, and each thread's current stream.

#include <levin/core/device.h>

#include <cuda_runtime.h>

#include <mutex>
#include <vector>

namespace levin::kernels::cuda {

/// Returns the stream that threads use unless told otherwise. It is created by Levin, as CUDA's legacy default stream
/// cannot be captured; it is a blocking stream, so that other code on the legacy stream (a plain cudaMemcpy of a
/// tensor's memory) still runs in order with it.
cudaStream_t default_stream(int device);
/// Returns the next of 32 non-blocking streams. Streams are never destroyed: memory remembers the stream it belongs to.
cudaStream_t next_pooled_stream(int device);
/// Returns this thread's stream.
cudaStream_t current_stream(int device);
/// Sets this thread's stream; null restores the default stream.
void set_current_stream(int device, cudaStream_t stream);

/// Returns the stream's handle if it belongs to this device, otherwise this thread's stream on the device.
cudaStream_t stream_on(int device, const Stream& stream);
inline Stream as_stream(int device, cudaStream_t stream) { return Stream(levin::cuda(device), stream); }

/// Events without timing, kept for reuse.
class EventPool {
 public:
  /// Returns an event of the current device.
  cudaEvent_t take(int device);
  void put_back(int device, cudaEvent_t event) noexcept;

 private:
  std::mutex mutex_;
  std::vector<std::vector<cudaEvent_t>> free_;  // by device
};
EventPool& event_pool();

/// Makes later work on `later` wait for the work queued on `earlier` so far; the streams may belong to different
/// devices.
void order_streams(int earlier_device, cudaStream_t earlier, int later_device, cudaStream_t later);

}  // namespace levin::kernels::cuda
