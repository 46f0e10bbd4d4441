#pragma once
// State that calls of NVIDIA's libraries share: handles, and the values that a result holds before sums are added to
// it.

#include "kernels/cuda/device/driver.h"

#include <levin/core/tensor_view.h>

#include <mutex>
#include <vector>

namespace levin::kernels::cuda {

/// A library's unused handles by device. They are never destroyed: at exit the device may already be gone.
class HandlePool {
 public:
  /// Returns a handle for the current device, which is `device`; `create` makes one if none is free.
  void* take(int device, void* (*create)());
  void put_back(int device, void* handle) noexcept;

 private:
  std::mutex mutex_;
  std::vector<void*> free_[kMaxDevices];
};

/// Makes the device current and gives one thread exclusive use of the handle during the session. Every session sets the
/// stream, so the work that one thread queued need not finish before another thread takes the handle.
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

/// Fills contiguous `out` with bias (n), one value per index of `axis`, to which a library then adds its sums. Levin's
/// kernels then round once. cuBLAS may also round sums to a 16-bit type before it adds them (tests/cuda/vendor).
void fill_with_bias(const TensorView& out, const TensorView& bias, int axis, Stream& stream);

}  // namespace levin::kernels::cuda
