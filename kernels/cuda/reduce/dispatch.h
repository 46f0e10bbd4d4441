#pragma once
// Dispatch from a DType to the type that a kernel is compiled for.

#include "kernels/cuda/base/cuda.h"

#include <levin/core/tensor_view.h>

namespace levin::kernels::cuda {

/// Calls `f.template operator()<T>()` with the device type of a floating dtype; throws DTypeError for other dtypes.
template <class F>
void dispatch_floats(DType t, const char* op, F&& f) {
  dispatch_floating(t, op, [&]<class L>() { f.template operator()<DeviceType<L>>(); });
}

/// The same with the type P of parameters, which are of dtype t or, if t is a 16-bit float, of float32: f<T, P>().
template <class F>
void dispatch_floats(DType t, DType parameters, const char* op, F&& f) {
  dispatch_floats(t, op, [&]<class T>() {
    if (parameters == t) return f.template operator()<T, T>();
    if constexpr (sizeof(T) == 2) {
      if (parameters == DType::f32) return f.template operator()<T, float>();
    }
    levin::detail::refuse_dtype(op, parameters, "parameters of the input's type, or of float32 beside a 16-bit float");
  });
}

/// Returns the tensor's elements in the device type; null if it is absent.
template <class T>
T* elements(const TensorView& v) {
  return static_cast<T*>(v.pointer);
}

}  // namespace levin::kernels::cuda
