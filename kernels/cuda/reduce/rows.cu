// The reductions that reduction_rows.h lists.
#include "kernels/cuda/reduce/run.cuh"

#include <levin/kernels/reduce.h>

namespace levin::kernels::cuda {

#define LEVIN_REDUCTION_ROW(name, Op)                                                                                  \
  void name(const ReduceArgs& a, Stream& stream) {                                                                     \
    dispatch_all(a.x.dtype, #name, [&]<class T>() { reduce<T>(reduction::Op{}, a.out, a.x, {}, stream); });            \
  }
#include <levin/kernels/reduction_rows.h>

}  // namespace levin::kernels::cuda
