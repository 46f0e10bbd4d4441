// any() and all(): whether any element, or all elements, are nonzero.
#include "kernels/cuda/reduce/run.cuh"

#include <levin/kernels/reduce.h>

namespace levin::kernels::cuda {

void any(const ReduceArgs& a, Stream& stream) {
  dispatch_all(a.x.dtype, "any", [&]<class T>() { reduce<T>(AnyOf{}, a.out, a.x, {}, stream); });
}

void all(const ReduceArgs& a, Stream& stream) {
  dispatch_all(a.x.dtype, "all", [&]<class T>() { reduce<T>(AllOf{}, a.out, a.x, {}, stream); });
}

}  // namespace levin::kernels::cuda
