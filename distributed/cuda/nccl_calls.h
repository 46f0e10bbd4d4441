#pragma once
// Collectives as calls of NCCL.

#include <levin/distributed/process_group.h>

#include "kernels/cuda/vendor/nccl.h"

namespace levin::distributed {

/// Throws DeviceError for tensors that do not lie on the device, DTypeError where NCCL cannot reduce the type.
void check_for_nccl(const Collective& c, int device);

/// What stays on this rank (of gather, scatter and all_to_all) is copied on the stream.
void copy_own_part(const Collective& c, int rank, int device, cudaStream_t stream);

/// Queues the calls of a collective; a send or recv counts its peer as `c.root`. Within a group of NCCL.
void queue_on_nccl(const Collective& c, int rank, int size, const kernels::cuda::nccl_api::Functions& nccl,
                   kernels::cuda::nccl_api::Comm comm, cudaStream_t stream);

}  // namespace levin::distributed
