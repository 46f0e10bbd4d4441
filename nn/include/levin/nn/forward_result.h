#pragma once
// A pre-hook that computes in the place of its module.

#include <levin/core/tensor.h>

namespace levin::nn {

/// What a forward pre-hook throws to give the module's output itself: forward is not run, the hooks behind it are.
struct ForwardResult {
  Tensor output;
};

}  // namespace levin::nn
