#pragma once
// The implementations of ProcessGroup.

#include "src/watched_group.h"

namespace levin::distributed {

std::shared_ptr<ProcessGroup> make_single_group(std::vector<int> ranks, Milliseconds timeout);
/// A single group where there is one rank.
std::shared_ptr<ProcessGroup> make_gloo_group(GroupPlace place);

/// What NCCL needs besides. One rank needs neither store nor watch.
struct NcclOptions {
  int device = 0;         ///< of this rank
  std::string algorithm;  ///< "ring", "tree" or "auto"
};
/// Throws ValueError in a build without CUDA, DeviceError where NCCL or the device cannot be used.
std::shared_ptr<ProcessGroup> make_nccl_group(GroupPlace place, const NcclOptions& options);
/// The device that a rank of "nccl" uses: the current one unless another is wanted. Throws as above.
int nccl_device(std::optional<int> wanted);

/// Tensors of the CPU go through the one group, those of CUDA devices through the other.
std::shared_ptr<ProcessGroup> make_device_groups(std::shared_ptr<ProcessGroup> cpu, std::shared_ptr<ProcessGroup> cuda);

}  // namespace levin::distributed
