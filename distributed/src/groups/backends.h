#pragma once
// Constructors of the implementations of ProcessGroup.

#include "src/groups/monitored_group.h"

namespace levin::distributed {

std::shared_ptr<ProcessGroup> make_single_group(std::vector<int> ranks, Duration timeout);
/// Makes a single group if there is one rank.
std::shared_ptr<ProcessGroup> make_gloo_group(GroupPlace place);

/// Further options of an NCCL group. With one rank the place needs neither store nor failure detector.
struct NcclOptions {
  int device = 0;         ///< device of this rank
  std::string algorithm;  ///< "ring", "tree" or "auto"
};
/// Throws ValueError in a build without CUDA, DeviceError where NCCL or the device cannot be used.
std::shared_ptr<ProcessGroup> make_nccl_group(GroupPlace place, const NcclOptions& options);
/// Returns the device of this rank: `wanted`, or else the current one. Throws what make_nccl_group throws.
int nccl_device(std::optional<int> wanted);

/// Makes a group that passes CPU tensors to one group and CUDA tensors to the other.
std::shared_ptr<ProcessGroup> make_device_groups(std::shared_ptr<ProcessGroup> cpu, std::shared_ptr<ProcessGroup> cuda);

}  // namespace levin::distributed
