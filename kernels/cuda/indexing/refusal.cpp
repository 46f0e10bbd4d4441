#include "kernels/cuda/indexing/refusal.h"

#include "kernels/cpu/indexing/index.h"
#include "kernels/cpu/loss/loss.h"

namespace levin::kernels::cuda {

void refuse_index(const char* op, std::int64_t value, const Shape& sizes, std::int64_t at, std::int64_t size) {
  cpu::index_out_of_range(op, value, sizes, at, size);
}

void refuse_label(const char* op, std::int64_t value, std::int64_t at, std::int64_t classes, std::int64_t ignored) {
  cpu::label_out_of_range(op, value, at, classes, ignored);
}

}  // namespace levin::kernels::cuda
