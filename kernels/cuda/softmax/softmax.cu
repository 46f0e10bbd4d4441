#include "kernels/cuda/softmax/softmax.cuh"

namespace levin::kernels::cuda {

void softmax(const SoftmaxArgs& a, Stream& stream) { run_softmax<false>(a, "softmax", stream); }

}  // namespace levin::kernels::cuda
