#pragma once
// One communicator of NCCL. Its calls return at once (it is made non-blocking), so that a rank which waits for others
// hears of a failure meanwhile, and may end it from another thread.

#include <functional>
#include <mutex>
#include <string>

#include "kernels/cuda/vendor/nccl.h"

namespace levin::distributed {

class NcclComm {
 public:
  /// Called again and again while NCCL is busy; an exception from it ends the waiting.
  using Patience = std::function<void()>;

  /// Waits for all ranks with this id. `device` is that of this rank.
  NcclComm(int device, int ranks, const kernels::cuda::nccl_api::UniqueId& id, int rank, const Patience& patience);
  /// Aborts it unless it was finished.
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  using Calls = std::function<void(const kernels::cuda::nccl_api::Functions&, kernels::cuda::nccl_api::Comm)>;
  /// Makes the calls as one group, and returns when all are queued. Throws DeviceError with NCCL's words.
  void call(const char* what, const Calls& calls, const Patience& patience);
  /// NCCL's words on what failed since, or nothing.
  std::string error();
  /// Work under way ends, here and in the end on the other ranks.
  void abort();
  /// Waits for what others still need of this rank, then gives all back.
  void finish(const Patience& patience);

 private:
  void wait(kernels::cuda::nccl_api::Result result, const char* what, std::unique_lock<std::mutex>& lock,
            const Patience& patience);

  int device_;
  std::mutex mutex_;
  kernels::cuda::nccl_api::Comm comm_ = nullptr;
};

/// Rank 0's answer is given to the others by other means.
kernels::cuda::nccl_api::UniqueId make_nccl_id();

}  // namespace levin::distributed
