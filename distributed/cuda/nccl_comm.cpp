#include "cuda/nccl_comm.h"

#include <fmt/format.h>
#include <levin/core/error.h>
#include <levin/kernels/cuda.h>

#include <chrono>
#include <thread>
#include <utility>

namespace levin::distributed {

using namespace kernels::cuda;

namespace {
constexpr std::chrono::microseconds kPause(50);
}

nccl_api::UniqueId make_nccl_id() {
  nccl_api::UniqueId id{};
  check(nccl().get_unique_id(&id), "ncclGetUniqueId");
  return id;
}

NcclComm::NcclComm(int device, int ranks, const nccl_api::UniqueId& id, int rank, const Patience& patience)
    : device_(device) {
  const levin::cuda::DeviceGuard guard(device);
  nccl_api::Config config;
  config.blocking = 0;
  std::unique_lock lock(mutex_);
  try {
    wait(nccl().init_rank_config(&comm_, ranks, id, rank, &config), "ncclCommInitRankConfig", lock, patience);
  } catch (...) {
    lock.unlock();
    abort();
    throw;
  }
}

NcclComm::~NcclComm() { abort(); }

void NcclComm::wait(nccl_api::Result result, const char* what, std::unique_lock<std::mutex>& lock,
                    const Patience& patience) {
  while (result == nccl_api::kInProgress) {
    lock.unlock();
    std::this_thread::sleep_for(kPause);
    patience();
    lock.lock();
    if (comm_ == nullptr) throw DeviceError(fmt::format("[nccl] {}: the communicator was aborted.", what));
    check(nccl().async_error(comm_, &result), "ncclCommGetAsyncError", comm_);
  }
  check(result, what, comm_);
}

void NcclComm::call(const char* what, const Calls& calls, const Patience& patience) {
  const levin::cuda::DeviceGuard guard(device_);
  std::unique_lock lock(mutex_);
  if (comm_ == nullptr) throw DeviceError(fmt::format("[nccl] {}: the communicator was aborted.", what));
  check(nccl().group_start(), "ncclGroupStart");
  try {
    calls(nccl(), comm_);
  } catch (...) {
    static_cast<void>(nccl().group_end());  // its error would hide that of the refused call
    throw;
  }
  wait(nccl().group_end(), what, lock, patience);
}

std::string NcclComm::error() {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return "the communicator was aborted.";
  auto result = nccl_api::kSuccess;
  check(nccl().async_error(comm_, &result), "ncclCommGetAsyncError", comm_);
  if (result == nccl_api::kSuccess || result == nccl_api::kInProgress) return {};
  const char* const words = nccl().last_error(comm_);
  return words && *words ? words : nccl().error_string(result);
}

void NcclComm::abort() {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return;
  static_cast<void>(nccl().abort(std::exchange(comm_, nullptr)));  // it has failed, or is given up
}

void NcclComm::finish(const Patience& patience) {
  std::unique_lock lock(mutex_);
  if (comm_ == nullptr) return;
  wait(nccl().finalize(comm_), "ncclCommFinalize", lock, patience);
  static_cast<void>(nccl().destroy(std::exchange(comm_, nullptr)));  // nothing is left to fail
}

}  // namespace levin::distributed
