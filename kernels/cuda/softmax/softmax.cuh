#pragma once
// Chooses the kernel for softmax and log-softmax.

#include "kernels/cuda/softmax/06_warp_a_row.cuh"
#include "kernels/cuda/softmax/columns.cuh"

namespace levin::kernels::cuda {

template <bool log>
void run_softmax(const SoftmaxArgs& a, const char* op, Stream& stream) {
  if (a.outer * a.n * a.inner == 0) return;
  dispatch_floating(a.x.dtype, op, [&]<class T>() {
    using D = DeviceType<T>;
    const SoftmaxRows<D> s = softmax_rows_of<T>(a);
    if (a.inner > 1) {
      launch(softmax_columns<D, log>, column_blocks(a.outer * a.inner, stream), s.x, s.out, a.outer, a.n, a.inner);
    } else if (s.n <= kMostWarpRow<D>) {
      run_softmax_warp_a_row<D, log>(s, stream);
    } else if (s.n > kMostSoftmaxRow<D>) {
      run_softmax_online<D, log>(s, stream);
    } else if (rows_are_aligned(s)) {
      run_softmax_vectors<D, log>(s, stream);
    } else {
      run_softmax_registers<D, log>(s, stream);
    }
  });
}

}  // namespace levin::kernels::cuda
