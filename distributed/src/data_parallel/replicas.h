#pragma once
// Copies tensors to the replicas of a module and back, and their gradients in backward.

#include <levin/core/tensor.h>

#include <atomic>
#include <memory>
#include <span>
#include <vector>

namespace levin::distributed {

/// Counts bytes that move between different devices, also in backward, on any thread.
struct BytesMoved {
  std::atomic<int64_t> parameters{0}, inputs{0}, outputs{0};
  std::atomic<int64_t> output_gradients{0}, parameter_gradients{0}, input_gradients{0};
};
using BytesMovedPtr = std::shared_ptr<BytesMoved>;

/// Returns the size of the inputs' first dimension; throws ShapeError where they differ or an input has none.
int64_t batch_of(const std::vector<Tensor>& inputs);

/// Splits x along its first dimension; part r is on device r.
std::vector<Tensor> scatter(const Tensor& x, const std::vector<int64_t>& sizes, std::span<const Device> devices,
                            const BytesMovedPtr& moved);
/// Copies `p` to each device; gradients are summed on the device of `p`, in the order of the devices.
std::vector<Tensor> replicate(const Tensor& p, std::span<const Device> devices, const BytesMovedPtr& moved);
/// Copies a buffer for a replica.
Tensor buffer_copy(const Tensor& buffer, Device device, BytesMoved& moved);
/// Concatenates the parts along their first dimension; scalars become one element each.
Tensor gather(std::vector<Tensor> parts, Device device, const BytesMovedPtr& moved);

}  // namespace levin::distributed
