// Layer norm: chooses the rung.
#include "kernels/cuda/norm/01_naive.cuh"
#include "kernels/cuda/norm/04_vectors.cuh"

namespace levin::kernels::cuda {

void layer_norm(const LayerNormArgs& a, Stream& stream) {
  if (a.rows * a.columns == 0) return;
  dispatch_floats(a.x.dtype, "layer_norm", [&]<class T>() {
    const LayerRows<T> l(a);
    if (l.n > kMostLayerRow<T>) return run_layer_norm_naive(l, stream);
    if (rows_are_aligned(l)) return run_layer_norm_vectors(l, stream);
    run_layer_norm_registers(l, stream);
  });
}

}  // namespace levin::kernels::cuda
