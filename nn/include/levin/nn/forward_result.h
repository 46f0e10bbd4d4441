#pragma once
// Lets a forward pre-hook compute the output in place of its module.

#include <levin/core/tensor.h>

namespace levin::nn {

/// Thrown by a forward pre-hook to provide the module's output: forward is skipped, and the forward hooks still run.
struct ForwardResult {
  Tensor output;
};

}  // namespace levin::nn
