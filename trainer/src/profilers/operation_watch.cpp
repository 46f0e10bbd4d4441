#include "src/profilers/operation_watch.h"

#include <levin/kernels/cuda.h>
#include <levin/kernels/kernel.h>
#include <levin/trainer/profilers/profiler.h>

#include <algorithm>
#include <mutex>

namespace levin {
namespace {

struct Call {
  const char* kernel;
  double start;
};
thread_local std::vector<Call> calls;  // nested kernel calls

/// One instance per process, never destroyed: another thread may still be inside when the last sink detaches.
class Observer final : public kernels::KernelObserver {
 public:
  static Observer& instance() {
    static Observer* const one = new Observer;
    return *one;
  }

  void called(const char* kernel, Device) override { calls.push_back({kernel, monotonic_seconds()}); }

  void returned(const char* kernel, const std::type_info&, const void*, const kernels::Work& work,
                const Stream& stream) override {
    const Device device = stream.device();
    if (device.type == DeviceType::cuda && !cuda::is_current_stream_capturing())
      device_backend(device).synchronize(device.index);
    const double end = monotonic_seconds();
    while (!calls.empty() && calls.back().kernel != kernel) calls.pop_back();  // calls that an exception left open
    if (calls.empty()) return;  // the call began before the observer was attached
    const double start = calls.back().start;
    calls.pop_back();
    const std::lock_guard lock(mutex_);
    for (OperationSink* sink : sinks_) sink->operation(kernel, device, work, start, end - start);
  }

  void attach(OperationSink& sink) {
    const std::lock_guard lock(mutex_);
    if (sinks_.empty()) former_ = kernels::set_observer(this);
    sinks_.push_back(&sink);
  }
  void detach(OperationSink& sink) {
    const std::lock_guard lock(mutex_);
    std::erase(sinks_, &sink);
    if (sinks_.empty()) kernels::set_observer(former_);
  }

 private:
  std::mutex mutex_;
  std::vector<OperationSink*> sinks_;
  kernels::KernelObserver* former_ = nullptr;
};

}  // namespace

OperationWatch::OperationWatch(OperationSink& sink) : sink_(sink) { Observer::instance().attach(sink); }
OperationWatch::~OperationWatch() { Observer::instance().detach(sink_); }

}  // namespace levin
