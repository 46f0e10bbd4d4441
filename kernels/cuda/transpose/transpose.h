#pragma once
// Copies between memory orders: where the result's neighbours are not the source's.

#include <levin/core/tensor_view.h>

namespace levin::kernels::cuda {

/// Copies x into out, of one type and sizes that broadcast, where one axis is unit in out and another one in x; false,
/// and nothing done, where the geometry is different or too thin for tiles.
bool try_transpose(const TensorView& out, const TensorView& x, const Stream& stream);

}  // namespace levin::kernels::cuda
