#pragma once
// Lets a forward pre-hook compute the output in place of its module.

#include <levin/core/tensor.h>

#include <vector>

namespace levin::nn {

/// Thrown by a forward pre-hook to provide the module's outputs: forward is skipped, and the forward hooks still run.
struct ForwardResult {
  std::vector<Tensor> outputs;
};

}  // namespace levin::nn
