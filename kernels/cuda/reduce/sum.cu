// Sums and products.
#include "kernels/cuda/reduce/run.cuh"

#include <levin/kernels/reduce.h>

namespace levin::kernels::cuda {

void sum(const SumArgs& a, Stream& stream) {
  dispatch_all(a.x.dtype, "sum", [&]<class T>() {
    const bool divides = kIsFloating<DeviceType<T>> && a.divisor != 1.0;
    const ReduceFinish finish = divides ? ReduceFinish{ReduceFinish::Kind::divide, a.divisor} : ReduceFinish{};
    reduce<T>(SumOf{}, a.out, a.x, finish, stream);
  });
}

void prod(const ReduceArgs& a, Stream& stream) {
  dispatch_all(a.x.dtype, "prod", [&]<class T>() { reduce<T>(ProductOf{}, a.out, a.x, {}, stream); });
}

}  // namespace levin::kernels::cuda
