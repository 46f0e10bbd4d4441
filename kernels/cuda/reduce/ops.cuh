#pragma once
// Reductions as the kernels use them; kernels/src/reductions.h has the mathematics.

#include "kernels/cuda/base/cuda.h"
#include "kernels/cuda/base/warp.h"
#include "kernels/src/reductions.h"

namespace levin::kernels::cuda {

template <class T>
inline constexpr bool kIsFloating = std::is_floating_point_v<ComputeType<T>>;

using reduction::AccumulatorOf;
using ReduceFinish = reduction::Finish;
using SumOf = reduction::Sum;

/// The same operation on accumulators, for the pieces of a line that was cut.
template <class Op>
struct OfPieces : Op {
  template <class Acc, class T>
  __device__ Acc map(T x) const {
    return x;
  }
};

/// combine() as a function object.
template <class Op>
struct Combine {
  Op op;
  template <class Acc>
  __device__ Acc operator()(Acc a, Acc b) const {
    return op.combine(a, b);
  }
};

}  // namespace levin::kernels::cuda
