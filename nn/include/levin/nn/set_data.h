#pragma once
// Replaces the contents of a tensor to which other handles exist.

#include <levin/core/tensor.h>

namespace levin::nn {

/// Replaces the memory, sizes, dtype and device of `t` by those of `value`, so that other handles to `t` (optimizers,
/// buckets) see the change. The memory is shared with `value`.
void set_data(const Tensor& t, const Tensor& value);

}  // namespace levin::nn
