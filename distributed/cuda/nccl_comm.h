#pragma once
// An NCCL communicator. It is non-blocking, so that a rank that waits for others can react to a failure, and so that
// another thread can abort it.

#include <functional>
#include <mutex>
#include <string>

#include "kernels/cuda/vendor/nccl.h"

namespace levin::distributed {

class NcclComm {
 public:
  /// Called repeatedly while NCCL is busy; an exception from it ends the wait.
  using Patience = std::function<void()>;

  /// Waits for all ranks with this id. `device` is this rank's device.
  NcclComm(int device, int ranks, const kernels::cuda::nccl_api::UniqueId& id, int rank, const Patience& patience);
  /// Aborts the communicator unless it was finished.
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  using Calls = std::function<void(const kernels::cuda::nccl_api::Functions&, kernels::cuda::nccl_api::Comm)>;
  /// Makes the calls as one NCCL group, and returns when all are queued. Throws DeviceError with NCCL's message.
  void call(const char* what, const Calls& calls, const Patience& patience);
  /// Returns NCCL's message about an asynchronous error, or an empty text.
  std::string error();
  /// Aborts pending work, here and eventually on the other ranks.
  void abort();
  /// Waits for work that others still need of this rank, then frees the communicator.
  void finish(const Patience& patience);

 private:
  void wait(kernels::cuda::nccl_api::Result result, const char* what, std::unique_lock<std::mutex>& lock,
            const Patience& patience);

  int device_;
  std::mutex mutex_;
  kernels::cuda::nccl_api::Comm comm_ = nullptr;
};

/// Made by rank 0, which sends it to the others through the store.
kernels::cuda::nccl_api::UniqueId make_nccl_id();

}  // namespace levin::distributed
