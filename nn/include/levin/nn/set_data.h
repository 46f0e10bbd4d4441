#pragma once
// Other contents for a tensor that is known elsewhere.

#include <levin/core/tensor.h>

namespace levin::nn {

/// `t` becomes `value` where it is, in size, type and device too, so that handles elsewhere (optimizers, buckets) see
/// it. The memory is shared with `value`.
void set_data(const Tensor& t, const Tensor& value);

}  // namespace levin::nn
