#pragma once
// What one rank has of a tensor that is divided among ranks, for a file of its own.

#include <levin/core/state_dict.h>

namespace levin::distributed {

/// Some of a tensor's elements, counted in the order of its own shape. A tensor that is not divided is one shard.
struct Shard {
  std::string name;
  Tensor values;           ///< (elements), or the whole tensor in its shape
  std::int64_t begin = 0;  ///< the place of the first
  Shape sizes{};           ///< of the whole tensor
};

}  // namespace levin::distributed
