#pragma once
// Mathematical functions by type, in a namespace of their own: the kernels' launchers have the same names.

#include "kernels/cuda/base/cuda.h"

#include <cmath>

namespace levin::kernels::cuda::math {

#define LEVIN_MATH_1(name)                                       \
  __device__ inline float name(float x) { return ::name##f(x); } \
  __device__ inline double name(double x) { return ::name(x); }
#define LEVIN_MATH_2(name)                                                   \
  __device__ inline float name(float x, float y) { return ::name##f(x, y); } \
  __device__ inline double name(double x, double y) { return ::name(x, y); }
LEVIN_MATH_1(fabs)
LEVIN_MATH_1(floor)
LEVIN_MATH_1(ceil)
LEVIN_MATH_1(rint)
LEVIN_MATH_1(trunc)
LEVIN_MATH_1(sqrt)
LEVIN_MATH_1(exp)
LEVIN_MATH_1(expm1)
LEVIN_MATH_1(log)
LEVIN_MATH_1(log2)
LEVIN_MATH_1(log10)
LEVIN_MATH_1(log1p)
LEVIN_MATH_1(sin)
LEVIN_MATH_1(cos)
LEVIN_MATH_1(tan)
LEVIN_MATH_1(tanh)
LEVIN_MATH_1(erf)
LEVIN_MATH_2(fmod)
LEVIN_MATH_2(pow)
LEVIN_MATH_2(atan2)
LEVIN_MATH_2(copysign)
#undef LEVIN_MATH_1
#undef LEVIN_MATH_2

__device__ inline float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
__device__ inline double fma(double x, double y, double z) { return ::fma(x, y, z); }

template <class C>
__device__ inline C sigmoid(C x) {
  return C(1) / (C(1) + exp(-x));
}

}  // namespace levin::kernels::cuda::math
