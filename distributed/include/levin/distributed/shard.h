#pragma once
// One rank's shard of a tensor, for sharded checkpoints.

#include <levin/core/state_dict.h>

namespace levin::distributed {

/// A range of a tensor's elements in row-major order. A tensor that is not sharded is one shard.
struct Shard {
  std::string name;        ///< of the full tensor in its state dict
  Tensor values;           ///< (elements), or the full tensor in its shape
  std::int64_t begin = 0;  ///< index of the first element
  Shape sizes{};           ///< of the full tensor
};

}  // namespace levin::distributed
