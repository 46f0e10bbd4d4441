#include "kernels/cuda/softmax/softmax.cuh"

namespace levin::kernels::cuda {

void log_softmax(const SoftmaxArgs& a, Stream& stream) { run_softmax<true>(a, "log_softmax", stream); }

}  // namespace levin::kernels::cuda
