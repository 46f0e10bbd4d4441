#pragma once
// From a DType to what a kernel is compiled for.

#include "kernels/cuda/base/cuda.h"

#include <levin/core/tensor_view.h>

namespace levin::kernels::cuda {

/// Calls `f.template operator()<T>()` with the device's type of a floating type; throws DTypeError for other types.
template <class F>
void dispatch_floats(DType t, const char* op, F&& f) {
  dispatch_floating(t, op, [&]<class L>() { f.template operator()<DeviceType<L>>(); });
}

/// The same with the type of tensors that may be of t or, where that is a 16-bit float, of float32: f<T, P>().
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

/// The tensor's elements as a kernel sees them; null where it is absent.
template <class T>
T* elements(const TensorView& v) {
  return static_cast<T*>(v.pointer);
}

}  // namespace levin::kernels::cuda
