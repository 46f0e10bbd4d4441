// Apart from the kernels because nvcc does not take fmt's headers.

#include "kernels/cpu/indexing/index.h"
#include "kernels/cuda/indexing/check.h"

namespace levin::kernels::cuda {

void refuse_index(const char* op, int64_t value, const Shape& sizes, int64_t at, int64_t size) {
  cpu::index_out_of_range(op, value, sizes, at, size);
}

}  // namespace levin::kernels::cuda
