#pragma once
// The rungs of 16-bit floats that do not ship, for one type; defined in rungs.cuh, for separate translation units.

#include "kernels/cuda/matmul/problem.cuh"

namespace levin::kernels::cuda {

template <class T>
struct HalfRungs {
  static void naive(const Problem<T>& p, Stream& stream);
  static void shared_tile(const Problem<T>& p, Stream& stream);
  static void tensor_cores(const Problem<T>& p, Stream& stream);
  static void swizzled(const Problem<T>& p, Stream& stream);
  static void async_stages(const Problem<T>& p, Stream& stream);
  static void register_buffers(const Problem<T>& p, Stream& stream);
  static void warpgroups(const Problem<T>& p, Stream& stream);
};

}  // namespace levin::kernels::cuda
