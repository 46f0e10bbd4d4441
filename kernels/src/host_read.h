#pragma once
// The part of HostRead that a CUDA build adds.

#include <levin/kernels/host_read.h>

namespace levin::kernels {

/// Begins to copy `bytes` on the tensor's device to the host; null where the device has no way to do so meanwhile.
std::unique_ptr<HostRead::Pending> begin_host_read(const Tensor& tensor, std::size_t bytes);

}  // namespace levin::kernels
