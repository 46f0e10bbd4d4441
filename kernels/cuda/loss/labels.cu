// Labels out of range are the one thing here that the host has to know at once, so check_labels waits for the stream:
// one number comes back. While a graph is recorded nothing can come back; then the check is left out, and the losses
// of such labels are NaN.
#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/base/scratch.h"

#include <levin/kernels/loss.h>

#include <string>

namespace levin::kernels::cuda {

/// first = the lowest place of a label that is neither in [0, classes) nor `ignored`; as it was when there is none.
__global__ void find_bad_label(const std::int64_t* labels, std::int64_t n, std::int64_t classes, std::int64_t ignored,
                               unsigned long long* first) {
  for (std::int64_t i = global_thread(); i < n; i += grid_threads()) {
    const std::int64_t label = labels[i];
    if ((label < 0 || label >= classes) && label != ignored) {
      atomicMin(first, static_cast<unsigned long long>(i));
      return;
    }
  }
}

namespace {

template <class T>
T read_back(const T* device, const Stream& stream) {
  T value;
  check(cudaMemcpyAsync(&value, device, sizeof value, cudaMemcpyDeviceToHost, stream_of(stream)), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream_of(stream)), "cudaStreamSynchronize");
  return value;
}

bool is_recorded(const Stream& stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream_of(stream), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace

void check_labels(const CheckLabelsArgs& a, Stream& stream) {
  constexpr unsigned long long kNone = ~0ull;
  const std::int64_t n = a.labels.numel();
  if (n == 0 || is_recorded(stream)) return;
  const auto* labels = a.labels.data<const std::int64_t>();
  Scratch<unsigned long long> first(stream, 1);
  check(cudaMemsetAsync(first.get(), 0xff, sizeof kNone, stream_of(stream)), "cudaMemsetAsync");
  launch(find_bad_label, {.grid = blocks_for(n), .block = 256, .stream = stream}, labels, n, a.classes, a.ignore_index,
         first.get());
  const unsigned long long place = read_back(first.get(), stream);
  if (place == kNone) return;
  throw IndexError("[" + std::string(a.op) + "] target " + std::to_string(read_back(labels + place, stream)) +
                   " at position " + std::to_string(place) + " is outside [0, " + std::to_string(a.classes) +
                   "). Labels count from 0; to leave a sample out, give it ignore_index (" +
                   std::to_string(a.ignore_index) + ").");
}

}  // namespace levin::kernels::cuda
