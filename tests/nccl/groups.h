#pragma once
// Groups over NCCL whose ranks are threads of this process, each with its own device.

#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>
#include <levin/distributed/process_group.h>
#include <levin/kernels/cuda.h>

#include "distributed/threads.h"

namespace levin::test {

using NcclBody = std::function<void(distributed::ProcessGroup&)>;

inline constexpr const char* kBoth = "cpu:gloo,cuda:nccl";

/// Runs `body` on n ranks, where rank r's current device is cuda:r, and returns their error messages.
inline std::vector<std::string> errors_in_nccl_group(int n, const NcclBody& body, const std::string& backend = "nccl",
                                                     Duration timeout = std::chrono::seconds(60)) {
  const distributed::TcpStore table("127.0.0.1", 0, {.server = true});
  return errors_on_threads(n, [&](int rank) {
    const cuda::DeviceGuard device(rank);
    const auto store = std::make_shared<distributed::TcpStore>("127.0.0.1", table.port());
    const auto group =
        distributed::make_process_group(backend, {.store = store, .rank = rank, .world_size = n, .timeout = timeout});
    body(*group);
  });
}

/// Does the same; no rank may throw.
inline void in_nccl_group(int n, const NcclBody& body, const std::string& backend = "nccl") {
  const auto errors = errors_in_nccl_group(n, body, backend);
  for (std::size_t r = 0; r < errors.size(); ++r) {
    if (!errors[r].empty()) throw std::runtime_error("rank " + std::to_string(r) + ": " + errors[r]);
  }
}

/// Returns the device of the rank on this thread.
inline Device own_device() { return cuda(cuda::current_device()); }

}  // namespace levin::test
