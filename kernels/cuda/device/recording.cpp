#include "kernels/cuda/device/recording.h"

#include "kernels/cuda/base/error.h"
#include "kernels/cuda/device/allocator.h"
#include "kernels/cuda/device/driver.h"
#include "kernels/cuda/device/streams.h"

#include <levin/core/error.h>

#include <algorithm>
#include <bit>
#include <mutex>

namespace levin::kernels::cuda {

namespace {

/// Captures in progress by CUDA's capture id, which streams that fork off share.
struct Captures {
  std::mutex mutex;
  std::vector<std::pair<unsigned long long, GraphRecording*>> running;
};

Captures& captures() {
  static Captures& all = *new Captures;
  return all;
}

/// Returns the id of the capture that the stream belongs to, 0 for none.
unsigned long long capture_of(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  check(cudaStreamGetCaptureInfo(stream, &status, &id), "cudaStreamGetCaptureInfo");
  return status == cudaStreamCaptureStatusNone ? 0 : id;
}

Recording* find_recording(const Stream& stream) {
  const int device = stream.device().index;
  const unsigned long long id = capture_of(stream_on(device, stream));
  if (id == 0) return nullptr;
  Captures& all = captures();
  const std::lock_guard lock(all.mutex);
  for (const auto& [number, recording] : all.running)
    if (number == id) return recording;
  throw DeviceError(
      "[graph] the stream is captured, but not by cuda::Graph, so every replay would draw the same random numbers. "
      "Capture with cuda::Graph.");
}

const bool recordings_registered = (register_recordings(levin::DeviceType::cuda, find_recording), true);

}  // namespace

GraphRecording::GraphRecording(int device, cudaStream_t stream)
    : device_(device), stream_(stream), id_(capture_of(stream)) {
  Captures& all = captures();
  const std::lock_guard lock(all.mutex);
  all.running.emplace_back(id_, this);
}

GraphRecording::~GraphRecording() {
  end();
  for (GeneratorState* slab : slabs_) allocator(device_).free(slab);
}

void GraphRecording::end() {
  Captures& all = captures();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.running, [this](const auto& entry) { return entry.second == this; });
}

GeneratorState* GraphRecording::add(Value value) {
  if (values_.size() == slabs_.size() * ReplayValues::kMost) {
    void* const slab = allocator(device_).allocate_outside_captures(sizeof(ReplayValues), stream_);
    slabs_.push_back(static_cast<GeneratorState*>(slab));
  }
  values_.push_back(std::move(value));
  return place(values_.size() - 1);
}

PhiloxState GraphRecording::draw(const std::shared_ptr<Generator>& generator, std::uint64_t blocks) {
  std::size_t i = 0;
  while (i < values_.size() && values_[i].generator != generator) ++i;
  GeneratorState* const base = i < values_.size() ? place(i) : add({.generator = generator});
  const std::uint64_t before = values_[i].blocks;
  values_[i].blocks += blocks;
  return {0, before, base};
}

const double* GraphRecording::variable(std::function<double()> now) {
  return reinterpret_cast<const double*>(add({.number = std::move(now)}));
}

void GraphRecording::before_run(cudaStream_t stream) {
  std::vector<GeneratorState> now(values_.size());
  for (std::size_t i = 0; i < now.size(); ++i)  // all before anything is drawn or queued, as this may throw
    if (!values_[i].generator) now[i].seed = std::bit_cast<std::uint64_t>(values_[i].number());
  for (std::size_t i = 0; i < now.size(); ++i)
    if (values_[i].generator) now[i] = values_[i].generator->reserve(values_[i].blocks);
  for (std::size_t s = 0; s < slabs_.size(); ++s) {
    const std::size_t first = s * ReplayValues::kMost,
                      count = std::min(now.size() - first, std::size_t{ReplayValues::kMost});
    ReplayValues values;
    std::copy_n(now.begin() + static_cast<std::ptrdiff_t>(first), count, values.at);
    write_replay_values(slabs_[s], values, static_cast<int>(count), as_stream(device_, stream));
  }
}

}  // namespace levin::kernels::cuda
