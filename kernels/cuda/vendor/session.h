#pragma once
// State that calls of NVIDIA's libraries share: their handles and what stands in the result before they add to it.

#include "kernels/cuda/device/driver.h"

#include <levin/core/tensor_view.h>

#include <mutex>
#include <vector>

namespace levin::kernels::cuda {

/// A library's handles that nobody uses now, by device. They are never destroyed: at a program's end the device may be
/// gone already.
class HandlePool {
 public:
  /// A handle for the current device, which is `device`; `create` makes one where none is free.
  void* take(int device, void* (*create)());
  void put_back(int device, void* handle) noexcept;

 private:
  std::mutex mutex_;
  std::vector<void*> free_[kMaxDevices];
};

/// The device is current and the handle one thread's alone until the session goes. Since every session sets the
/// stream, what one thread queued needs no wait before another takes the handle.
class Session {
 public:
  Session(HandlePool& pool, int device, void* (*create)())
      : guard_(device), pool_(pool), device_(device), handle_(pool.take(device, create)) {}
  ~Session() { pool_.put_back(device_, handle_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  void* handle() const { return handle_; }

 private:
  DeviceGuard guard_;
  HandlePool& pool_;
  int device_;
  void* handle_;
};

/// Fills `out`, contiguous, with bias (n), one value along `axis`. A library that then adds its sums to the result
/// rounds once, as our own kernels do.
void fill_with_bias(const TensorView& out, const TensorView& bias, int axis, Stream& stream);

}  // namespace levin::kernels::cuda
