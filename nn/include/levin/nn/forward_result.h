#pragma once
// A pre-hook that computes in the place of its module.

#include <levin/core/tensor.h>

namespace levin::nn {

/// Thrown by a forward pre-hook to give the module's output itself: forward is not run, the hooks behind it are.
struct ForwardResult {
  Tensor output;
};

}  // namespace levin::nn
