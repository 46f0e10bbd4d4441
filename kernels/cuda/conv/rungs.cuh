#pragma once
// The rungs' classes for each type, instantiated in compile units of their own.

#include "kernels/cuda/conv/01_direct.cuh"
#include "kernels/cuda/conv/02_columns.cuh"
#include "kernels/cuda/conv/04_tensor_cores.cuh"

namespace levin::kernels::cuda {

using FloatConv = ImplicitConv<float, FloatProduct>;
template <class T>
using HalfConv = ImplicitConv<T, HalfProduct<T>>;

extern template struct DirectConv<double>;
extern template struct DirectConv<float>;
extern template struct DirectConv<__half>;
extern template struct DirectConv<__nv_bfloat16>;
extern template struct ColumnsConv<double>;
extern template struct ColumnsConv<float>;
extern template struct ImplicitConv<float, FloatProduct>;
extern template struct ImplicitConv<__half, HalfProduct<__half>>;
extern template struct ImplicitConv<__nv_bfloat16, HalfProduct<__nv_bfloat16>>;

}  // namespace levin::kernels::cuda
