#pragma once
// How tensors go to the replicas of a module and back, with their gradients.

#include <levin/core/tensor.h>

#include <atomic>
#include <memory>
#include <span>
#include <vector>

namespace levin::distributed {

/// Counts what goes between different devices, also in backward, wherever that runs.
struct BytesMoved {
  std::atomic<int64_t> parameters{0}, inputs{0}, outputs{0};
  std::atomic<int64_t> output_gradients{0}, parameter_gradients{0}, input_gradients{0};
};
using BytesMovedPtr = std::shared_ptr<BytesMoved>;

/// The first dimension of all inputs; throws ShapeError where they differ or an input has none.
int64_t batch_of(const std::vector<Tensor>& inputs);

/// Parts of x along its first dimension, part r on device r.
std::vector<Tensor> scatter(const Tensor& x, const std::vector<int64_t>& sizes, std::span<const Device> devices,
                            const BytesMovedPtr& moved);
/// `p` on each device; gradients are summed where `p` is, in the order of the devices.
std::vector<Tensor> replicate(const Tensor& p, std::span<const Device> devices, const BytesMovedPtr& moved);
/// A buffer of a replica's own.
Tensor buffer_copy(const Tensor& buffer, Device device, BytesMoved& moved);
/// The parts joined along their first dimension; those of no dimension become one element each.
Tensor gather(std::vector<Tensor> parts, Device device, const BytesMovedPtr& moved);

}  // namespace levin::distributed
