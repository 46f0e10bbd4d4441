// The rungs that are not products on the fly, a compile unit of their own.

#include "kernels/cuda/conv/rungs.cuh"

namespace levin::kernels::cuda {

template struct DirectConv<double>;
template struct DirectConv<float>;
template struct DirectConv<__half>;
template struct DirectConv<__nv_bfloat16>;
template struct ColumnsConv<double>;
template struct ColumnsConv<float>;

}  // namespace levin::kernels::cuda
