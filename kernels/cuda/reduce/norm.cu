// Vector norms.
#include "kernels/cuda/reduce/run.cuh"

#include <levin/kernels/reduce.h>

namespace levin::kernels::cuda {

void norm(const NormArgs& a, Stream& stream) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto finish = ReduceFinish::root(a.p);
  dispatch_floating(a.x.dtype, "norm", [&]<class T>() {
    if (a.p == infinity) return reduce<T>(reduction::MaxAbs{}, a.out, a.x, finish, stream);
    if (a.p == -infinity) return reduce<T>(reduction::MinAbs{}, a.out, a.x, finish, stream);
    reduction::PowerSum<> op;  // one kernel for every p
    op.p = a.p;
    reduce<T>(op, a.out, a.x, finish, stream);
  });
}

}  // namespace levin::kernels::cuda
