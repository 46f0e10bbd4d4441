// Vector norms.
#include "kernels/cuda/reduce/run.cuh"

#include <levin/kernels/reduce.h>

namespace levin::kernels::cuda {

void norm(const NormArgs& a, Stream& stream) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  dispatch_floating(a.x.dtype, "norm", [&]<class T>() {
    if (a.p == infinity) return reduce<T>(LargestMagnitude{}, a.out, a.x, {}, stream);
    if (a.p == -infinity) return reduce<T>(SmallestMagnitude{}, a.out, a.x, {}, stream);
    ReduceFinish finish;
    if (a.p == 2.0) {
      finish.kind = ReduceFinish::Kind::square_root;
    } else if (a.p != 1.0 && a.p != 0.0) {
      finish = {ReduceFinish::Kind::power, 1.0 / a.p};
    }
    PowerSum op;
    op.p = a.p;
    reduce<T>(op, a.out, a.x, finish, stream);
  });
}

}  // namespace levin::kernels::cuda
