// Backend "nccl" in a build without CUDA. A CUDA build compiles distributed/cuda instead.

#include "src/groups/backends.h"

namespace levin::distributed {

namespace {

[[noreturn]] void absent() {
  throw ValueError(
      "[make_process_group] this build has no CUDA, so there is no backend \"nccl\". Choose gloo, or build with "
      "-DLEVIN_CUDA=ON (or EMULATE, to run the kernels on the cpu).");
}

}  // namespace

std::shared_ptr<ProcessGroup> make_nccl_group(GroupPlace, const NcclOptions&) { absent(); }
int nccl_device(std::optional<int>) { absent(); }

}  // namespace levin::distributed
