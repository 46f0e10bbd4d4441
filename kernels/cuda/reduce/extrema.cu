// Maximum and minimum.
#include "kernels/cuda/reduce/run.cuh"

#include <levin/kernels/reduce.h>

namespace levin::kernels::cuda {

void amax(const ReduceArgs& a, Stream& stream) {
  dispatch_all(a.x.dtype, "amax", [&]<class T>() { reduce<T>(LargestOf{}, a.out, a.x, {}, stream); });
}

void amin(const ReduceArgs& a, Stream& stream) {
  dispatch_all(a.x.dtype, "amin", [&]<class T>() { reduce<T>(SmallestOf{}, a.out, a.x, {}, stream); });
}

}  // namespace levin::kernels::cuda
