#pragma once
// Type dispatch of kernels that compute in float32 and float64; operations widen 16-bit floats before they call them.

#include <levin/core/dtype.h>

namespace levin::kernels::cpu {

/// Calls `f.template operator()<T>()` with T float or double; throws DTypeError for other types.
template <class F>
void dispatch_wide(DType t, const char* op, F&& f) {
  if (t == DType::f32) return f.template operator()<float>();
  if (t == DType::f64) return f.template operator()<double>();
  levin::detail::refuse_dtype(op, t, "float32 and float64");
}

}  // namespace levin::kernels::cpu
