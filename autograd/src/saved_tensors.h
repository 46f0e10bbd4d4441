#pragma once
// The hooks that are in force, and what they packed.

#include <levin/autograd/node.h>
#include <levin/autograd/saved_tensors.h>

namespace levin {

struct saved_tensors_hooks::Functions {
  Pack pack;
  Unpack unpack;
};

/// One packed tensor, and what it was.
struct PackedTensor {
  std::any value;
  std::shared_ptr<saved_tensors_hooks::Functions> functions;
  TensorMeta meta;

  /// Throws GradError unless unpack returns a tensor like the one that was packed.
  Tensor unpack(const char* operation) const;
};

/// The functions of the innermost object on this thread; null without one.
std::shared_ptr<saved_tensors_hooks::Functions>& saved_tensor_functions();

}  // namespace levin
