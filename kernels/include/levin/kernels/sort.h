#pragma once
// Contracts of sorting. All tensors are contiguous; x is treated as (outer, n, inner) and sorted along n.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// Returns the first k elements of each line in ascending or descending order: values (outer, k, inner) of x's type and
/// indices (outer, k, inner) int64, their positions in the line. Ties keep the order of x; NaN is larger than
/// everything, and all NaNs are ties, as are both zeros. Any type. sort needs k = n. Bytes: x once, both outputs once;
/// about 4 passes over 8 bytes of workspace per element.
struct SortArgs {
  TensorView values, indices, x;
  int64_t outer = 1, n = 1, inner = 1, k = 1;
  bool descending = false;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(x, values, indices), 0, x.dtype}; }
};
extern constinit Kernel<void(const SortArgs&, Stream&)> sort, topk;

}  // namespace levin::kernels
