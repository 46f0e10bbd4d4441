#pragma once
// Rows of softmax and arithmetic that all rungs share.

#include "kernels/cuda/base/ptx.h"
#include "kernels/cuda/reduce/group.cuh"

#include <levin/kernels/softmax.h>

#include <limits>

namespace levin::kernels::cuda {

/// Accumulator type of sums: float for the 16-bit floats, else double.
template <class T>
using WideSum = std::conditional_t<sizeof(T) == 2, float, double>;

template <class C>
inline constexpr C kNoMaximum = -std::numeric_limits<C>::infinity();

__device__ inline float exp_of(float x) { return expf(x); }
__device__ inline double exp_of(double x) { return ::exp(x); }
/// The larger number. A NaN may be lost: its exponential is NaN, and so is the row's sum.
struct LargerNumber {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
  __device__ double operator()(double a, double b) const { return fmax(a, b); }
};

/// exp(x - top) with an error far below the rounding of T. For 16-bit floats two instructions: the rounding of top's
/// product is a factor that all elements of a row share, and so does their sum.
template <class T, class C>
__device__ inline C exp_below(C x, C top) {
  if constexpr (sizeof(T) == 2) {
    constexpr float log2_e = 1.4426950408889634f;
    return ptx::exp2_flushed(fmaf(x, log2_e, -top * log2_e));
  } else {
    return exp_of(x - top);
  }
}
__device__ inline float log_of(float x) { return logf(x); }
__device__ inline double log_of(double x) { return ::log(x); }

/// x and out (rows, n), in the device types. out may be x.
template <class T>
struct SoftmaxRows {
  const T* x;
  T* out;
  std::int64_t rows, n;
};

/// Computes an element: exp(x - top) / sum or x - top - log(sum), where `last` is 1 / sum or log(sum).
template <bool log, class C>
__device__ inline C softmax_of(C x, C top, C last) {
  if constexpr (log) {
    return x - top - last;
  } else {
    return exp_of(x - top) * last;
  }
}
template <bool log, class C, class S>
__device__ inline C last_of(S sum) {
  if constexpr (log) {
    return static_cast<C>(log_of(sum));
  } else {
    return static_cast<C>(S(1) / sum);
  }
}

template <class T>
SoftmaxRows<DeviceType<T>> softmax_rows_of(const SoftmaxArgs& a) {
  return {reinterpret_cast<const DeviceType<T>*>(a.x.data<T>()), reinterpret_cast<DeviceType<T>*>(a.out.data<T>()),
          a.outer, a.n};
}

inline constexpr int kSoftmaxThreads = 256;

}  // namespace levin::kernels::cuda
