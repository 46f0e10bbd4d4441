// The check of labels for losses that are composed of other operations.
#include "kernels/cuda/indexing/guard.h"

#include <levin/kernels/loss.h>

namespace levin::kernels::cuda {

void check_labels(const CheckLabelsArgs& a, Stream& stream) {
  check_values(a.labels, label_guard(a.op, a.labels.sizes, a.classes, a.ignore_index, stream), stream);
}

}  // namespace levin::kernels::cuda
