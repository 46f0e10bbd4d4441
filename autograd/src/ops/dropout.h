#pragma once
// Dropout at a known place of the random sequence, for operations that drop the same elements again in backward.

#include <levin/core/generator.h>
#include <levin/core/tensor.h>

namespace levin::ops {

/// Drops elements of x with probability p; element i takes word i of the sequence that begins at `state`.
Tensor dropout_at(const Tensor& x, double p, const PhiloxState& state);

}  // namespace levin::ops
