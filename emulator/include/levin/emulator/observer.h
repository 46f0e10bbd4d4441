#pragma once
// Tells a program what the threads of its kernels do, for films of a kernel's run (emulator/film).

#include <levin/emulator/execution.h>

namespace levin::emulator {

/// Is called by the running thread of a kernel. Without an observer each place costs one comparison.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  /// The first thread of a block has reached the declaration of a shared array at `site`.
  virtual void on_array(const void* array, std::size_t bytes, Site site) = 0;
  /// The thread has arrived at a barrier of its block.
  virtual void on_barrier(const char* name, Site site) = 0;
  /// The thread's lane has arrived at a function of the lanes in `mask`, which exist.
  virtual void on_warp_function(const char* name, std::uint32_t mask, Site site) = 0;
  /// Called around the common work of a barrier or warp function, which the last thread to arrive does for all.
  virtual void on_common_work(bool begins) = 0;
  /// The thread has ended.
  virtual void on_end() = 0;
};

/// Sets the observer of all kernels that run from here on, or none (null). It must outlive them. Kernels then have to
/// run on one host thread (Config::workers).
void observe(Observer* observer);

}  // namespace levin::emulator
