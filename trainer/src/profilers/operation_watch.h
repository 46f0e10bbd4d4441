#pragma once
// Reports every kernel call to profilers, with its time and its work.

#include <levin/kernels/work.h>

namespace levin {

/// Receives the calls of all threads, serialized. `start` and `seconds` are relative to monotonic_seconds().
class OperationSink {
 public:
  virtual ~OperationSink() = default;
  virtual void operation(const char* kernel, Device device, const kernels::Work& work, double start,
                         double seconds) = 0;
};

/// While alive, reports to its sink. On a device every call is synchronized, unless the thread captures a graph.
class OperationWatch {
 public:
  explicit OperationWatch(OperationSink& sink);
  ~OperationWatch();
  OperationWatch(const OperationWatch&) = delete;
  OperationWatch& operator=(const OperationWatch&) = delete;

 private:
  OperationSink& sink_;
};

}  // namespace levin
