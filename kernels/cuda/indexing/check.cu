// The check of indices: one number comes back, the place of the first that is out of range.

#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/indexing/index.cuh"

namespace levin::kernels::cuda {

__global__ void find_outside(const std::int64_t* index, std::int64_t count, std::int64_t size,
                             unsigned long long* first) {
  for (std::int64_t i = global_thread(); i < count; i += grid_threads()) {
    if (is_index(index[i], size)) continue;
    atomicMin(first, static_cast<unsigned long long>(i));
    return;
  }
}

namespace {

bool is_captured(Stream& stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream_of(stream), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

template <class T>
T read_back(const T* from, Stream& stream) {
  T value;
  check(cudaMemcpyAsync(&value, from, sizeof value, cudaMemcpyDeviceToHost, stream_of(stream)), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream_of(stream)), "cudaStreamSynchronize");
  return value;
}

}  // namespace

void check_index(const TensorView& index, int64_t size, const char* op, Stream& stream) {
  const std::int64_t count = index.numel();
  if (count == 0 || is_captured(stream)) return;
  const auto* values = static_cast<const std::int64_t*>(index.pointer);
  Scratch<unsigned long long> first(stream, 1);
  check(cudaMemsetAsync(first.get(), 0xff, sizeof(unsigned long long), stream_of(stream)), "cudaMemsetAsync");
  launch(find_outside, {.grid = blocks_for(count), .block = 256, .stream = stream}, values, count, size, first.get());
  const auto at = static_cast<std::int64_t>(read_back(first.get(), stream));
  if (at >= 0) refuse_index(op, read_back(values + at, stream), index.sizes, at, size);
}

}  // namespace levin::kernels::cuda
