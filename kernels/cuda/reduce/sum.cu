// Sums and means.
#include "kernels/cuda/reduce/run.cuh"

#include <levin/kernels/reduce.h>

namespace levin::kernels::cuda {

void sum(const SumArgs& a, Stream& stream) {
  const auto finish = ReduceFinish::division(a.divisor);
  dispatch_all(a.x.dtype, "sum", [&]<class T>() { reduce<T>(SumOf{}, a.out, a.x, finish, stream); });
}

}  // namespace levin::kernels::cuda
