#include "kernels/cuda/base/error.h"
#include "kernels/cuda/device/backend.h"
#include "kernels/cuda/device/driver.h"
#include "kernels/cuda/device/peers.h"
#include "kernels/cuda/device/pinned.h"
#include "kernels/cuda/device/pinned_tensors.h"
#include "kernels/cuda/device/streams.h"
#include "kernels/cuda/indexing/guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace levin::kernels::cuda {

namespace {

bool is_cuda(Device device) { return device.type == levin::DeviceType::cuda; }

/// Refuses the copy in a capture: host memory would be accessed at the capture, or not at all at a replay.
void refuse_capture(cudaStream_t stream, Device from, Device to) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  if (status == cudaStreamCaptureStatusNone) return;
  throw DeviceError(fmt::format(
      "[copy] a copy from {} to {} cannot be part of a graph. Copy the inputs before the capture, and read the results "
      "after a replay.",
      to_string(from), to_string(to)));
}

/// Copies at once from a page-locked tensor, else in pieces through page-locked memory: one piece is copied while the
/// next is read.
void copy_from_host(void* to, int device, const void* from, std::size_t bytes, cudaStream_t stream) {
  const DeviceGuard guard(device);
  if (pinned_tensors().holds(from, bytes)) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync from the host");
    pinned_tensors().record_use(from, device, stream);
    return;
  }
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min(bytes - done, PinnedPool::kLargest);
    const PinnedPool::Buffer buffer = pinned_pool().take(piece);
    std::memcpy(buffer.p, static_cast<const std::byte*>(from) + done, piece);
    const cudaError_t error =
        cudaMemcpyAsync(static_cast<std::byte*>(to) + done, buffer.p, piece, cudaMemcpyHostToDevice, stream);
    pinned_pool().put_back(buffer, device, stream);
    check(error, "cudaMemcpyAsync from the host");
    done += piece;
  }
}

void copy_to_host(void* to, const void* from, int device, std::size_t bytes, cudaStream_t stream) {
  const DeviceGuard guard(device);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync to the host");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  throw_refused_index(device);
}

/// Copies on the source's stream, after the work queued on the destination's stream, which then waits for the copy.
void copy_between(void* to, int to_device, const void* from, int from_device, std::size_t bytes, cudaStream_t to_stream,
                  cudaStream_t from_stream) {
  enable_peer_access(from_device, to_device);
  order_streams(to_device, to_stream, from_device, from_stream);
  {
    const DeviceGuard guard(from_device);
    check(cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, from_stream), "cudaMemcpyPeerAsync");
  }
  order_streams(from_device, from_stream, to_device, to_stream);
}

}  // namespace

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes,
                const Stream& stream) {
  const auto known = [](Device d) { return is_cuda(d) || d.type == levin::DeviceType::cpu; };
  if (!known(to_device) || !known(from_device)) {
    throw DeviceError(fmt::format("[copy] cuda cannot copy from {} to {}; go through the cpu.", to_string(from_device),
                                  to_string(to_device)));
  }
  if (bytes == 0) return;
  if (!is_cuda(to_device) && !is_cuda(from_device)) {
    std::memcpy(to, from, bytes);
  } else if (!is_cuda(from_device)) {
    cudaStream_t s = stream_on(to_device.index, stream);
    refuse_capture(s, from_device, to_device);
    copy_from_host(to, to_device.index, from, bytes, s);
  } else if (!is_cuda(to_device)) {
    cudaStream_t s = stream_on(from_device.index, stream);
    refuse_capture(s, from_device, to_device);
    copy_to_host(to, from, from_device.index, bytes, s);
  } else if (to_device == from_device) {
    const DeviceGuard guard(to_device.index);
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_on(to_device.index, stream)),
          "cudaMemcpyAsync");
  } else {
    copy_between(to, to_device.index, from, from_device.index, bytes, stream_on(to_device.index, stream),
                 stream_on(from_device.index, stream));
  }
}

}  // namespace levin::kernels::cuda
