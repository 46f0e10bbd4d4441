#pragma once
// Tells profilers of every kernel call, with its time and its work.

#include <levin/kernels/work.h>

namespace levin {

/// Gets the calls of all threads, one after the other. `start` and `seconds` are of profiler_now().
class OperationSink {
 public:
  virtual ~OperationSink() = default;
  virtual void operation(const char* kernel, Device device, const kernels::Work& work, double start,
                         double seconds) = 0;
};

/// While one is alive its sink is told. On a device every call is waited for, unless the thread records a graph.
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
