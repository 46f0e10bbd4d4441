#pragma once
// Translates collectives into NCCL calls.

#include <levin/distributed/process_group.h>

#include "kernels/cuda/vendor/nccl.h"

namespace levin::distributed {

/// Throws DeviceError for tensors on another device, DTypeError where NCCL cannot reduce the type.
void check_for_nccl(const Collective& c, int device);

/// Copies this rank's own part of a gather, scatter or all_to_all, on the stream.
void copy_own_part(const Collective& c, int rank, int device, cudaStream_t stream);

/// Queues the calls of a collective, within an NCCL group call. For send and recv, `c.root` is the peer.
void queue_on_nccl(const Collective& c, int rank, int size, const kernels::cuda::nccl_api::Functions& nccl,
                   kernels::cuda::nccl_api::Comm comm, cudaStream_t stream);

}  // namespace levin::distributed
