#pragma once
// The part of HostRead that a CUDA build adds.

#include <levin/kernels/host_read.h>

namespace levin::kernels {

/// Begins an asynchronous copy of `bytes` from the tensor's device to the host; returns null if the device does not
/// support it.
std::unique_ptr<HostRead::Pending> begin_host_read(const Tensor& tensor, std::size_t bytes);

}  // namespace levin::kernels
