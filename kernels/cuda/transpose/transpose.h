#pragma once
// Copies between memory layouts in which different axes have unit stride.

#include <levin/core/tensor_view.h>

namespace levin::kernels::cuda {

/// Copies x into out, of one type and sizes that broadcast, if one axis has unit stride in out and another one in x.
/// Returns false, having done nothing, if the geometry is different or too thin for tiles.
bool try_transpose(const TensorView& out, const TensorView& x, const Stream& stream);

}  // namespace levin::kernels::cuda
