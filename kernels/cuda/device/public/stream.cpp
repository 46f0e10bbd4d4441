// levin::cuda: streams and events.

#include "kernels/cuda/base/error.h"
#include "kernels/cuda/device/driver.h"
#include "kernels/cuda/device/streams.h"
#include "kernels/cuda/indexing/guard.h"

#include <levin/kernels/cuda.h>

#include <fmt/format.h>

#include <utility>

namespace levin {

namespace backend = kernels::cuda;

namespace {

cudaStream_t native(const cuda::Stream& s) { return static_cast<cudaStream_t>(s.handle()); }
cudaEvent_t native(void* event) { return static_cast<cudaEvent_t>(event); }

bool is_done(cudaError_t status, const char* call) {
  if (status == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());  // clears cudaErrorNotReady
    return false;
  }
  backend::check(status, call);
  return true;
}

levin::Stream pooled_stream(int device) {
  device = backend::resolve_device(device);
  return backend::as_stream(device, backend::next_pooled_stream(device));
}

}  // namespace

cuda::Stream::Stream(int device) : stream_(pooled_stream(device)) {}

bool cuda::Stream::query() const { return is_done(cudaStreamQuery(native(*this)), "cudaStreamQuery"); }

void cuda::Stream::synchronize() const {
  const backend::DeviceGuard guard(device().index);
  backend::check(cudaStreamSynchronize(native(*this)), "cudaStreamSynchronize");
  backend::throw_refused_index(device().index);
}

void cuda::Stream::record_event(Event& event) const { event.record(*this); }

void cuda::Stream::wait_event(const Event& event) const { event.wait(*this); }

void cuda::Stream::wait_stream(const Stream& other) const {
  backend::order_streams(other.device().index, native(other), device().index, native(*this));
}

cuda::Stream cuda::current_stream(int device) {
  device = backend::resolve_device(device);
  return Stream(backend::as_stream(device, backend::current_stream(device)));
}

cuda::Stream cuda::default_stream(int device) {
  device = backend::resolve_device(device);
  return Stream(backend::as_stream(device, backend::default_stream(device)));
}

void cuda::set_stream(const Stream& stream) {
  if (stream.device().type != DeviceType::cuda) {
    throw DeviceError(fmt::format("[cuda] a stream of {} is none of cuda.", to_string(stream.device())));
  }
  backend::set_current_stream(stream.device().index, native(stream));
}

cuda::StreamGuard::StreamGuard(const Stream& stream)
    : device_(stream.device().index), former_(current_stream(stream.device().index)) {
  set_stream(stream);
}

cuda::StreamGuard::~StreamGuard() { backend::set_current_stream(former_.device().index, native(former_)); }

cuda::Event::Event(bool enable_timing) : timing_(enable_timing) {}

cuda::Event::~Event() {
  if (handle_) static_cast<void>(cudaEventDestroy(native(handle_)));
}

cuda::Event::Event(Event&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), device_(other.device_), timing_(other.timing_) {}

cuda::Event& cuda::Event::operator=(Event&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(device_, other.device_);
  std::swap(timing_, other.timing_);
  return *this;
}

void cuda::Event::record() { record(current_stream()); }

void cuda::Event::record(const Stream& stream) {
  const int device = stream.device().index;
  const backend::DeviceGuard guard(device);
  if (!handle_) {
    cudaEvent_t event = nullptr;
    backend::check(cudaEventCreateWithFlags(&event, timing_ ? cudaEventDefault : cudaEventDisableTiming),
                   "cudaEventCreateWithFlags");
    handle_ = event;
    device_ = device;
  } else if (device != device_) {
    throw DeviceError(
        fmt::format("[event] it belongs to cuda:{}, the stream to cuda:{}. Use another event.", device_, device));
  }
  backend::check(cudaEventRecord(native(handle_), native(stream)), "cudaEventRecord");
}

void cuda::Event::wait() const { wait(current_stream()); }

void cuda::Event::wait(const Stream& stream) const {
  if (!handle_) return;
  const backend::DeviceGuard guard(stream.device().index);
  backend::check(cudaStreamWaitEvent(native(stream), native(handle_), 0), "cudaStreamWaitEvent");
}

bool cuda::Event::query() const { return !handle_ || is_done(cudaEventQuery(native(handle_)), "cudaEventQuery"); }

void cuda::Event::synchronize() const {
  if (!handle_) return;
  backend::check(cudaEventSynchronize(native(handle_)), "cudaEventSynchronize");
  backend::throw_refused_index(device_);
}

double cuda::Event::elapsed_time(const Event& end) const {
  if (!timing_ || !end.timing_ || !handle_ || !end.handle_) {
    throw ValueError("[event] both events must be made with enable_timing and recorded before time is taken.");
  }
  synchronize();
  end.synchronize();
  float milliseconds = 0;
  backend::check(cudaEventElapsedTime(&milliseconds, native(handle_), native(end.handle_)), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds);
}

}  // namespace levin
