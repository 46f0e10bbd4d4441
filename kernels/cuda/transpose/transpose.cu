#include "kernels/cuda/transpose/transpose.h"

#include "kernels/cuda/transpose/03_padded.cuh"
#include "kernels/cuda/transpose/04_packed.cuh"

#include <algorithm>
#include <optional>

namespace levin::kernels::cuda {

namespace {

constexpr std::int64_t kThinnest = 8;  ///< with fewer rows or columns most of a tile is empty

}  // namespace

std::optional<TransposeProblem> find_transpose(const TensorView& out, const TensorView& x) {
  if (out.dtype != x.dtype || x.is_number() || out.numel() == 0) return std::nullopt;
  const elementwise::Plan plan(out, {&x});
  const int row = plan.dims() - 1;
  int column = -1;
  for (int d = 0; d < row; ++d)
    if (plan.stride(1, d) == 1) column = d;
  if (column < 0 || plan.stride(0, row) != 1) return std::nullopt;
  TransposeProblem p;
  p.out = plan.pointer(0);
  p.in = plan.pointer(1);
  p.rows = plan.size(row);
  p.columns = plan.size(column);
  p.out_pitch = plan.stride(0, column);
  p.in_pitch = plan.stride(1, row);
  for (int d = 0; d < row; ++d) {
    if (d == column) continue;
    p.sizes[p.dims] = Divider(static_cast<std::uint32_t>(plan.size(d)));
    p.strides[0][p.dims] = plan.stride(0, d);
    p.strides[1][p.dims++] = plan.stride(1, d);
    p.planes *= plan.size(d);
  }
  if (p.rows < 2 || p.columns < 2 || p.cut(32) >= std::int64_t{1} << 31) return std::nullopt;
  return p;
}

bool try_transpose(const TensorView& out, const TensorView& x, const Stream& stream) {
  const auto p = find_transpose(out, x);
  if (!p || std::min(p->rows, p->columns) < kThinnest) return false;
  with_element(size_of(out.dtype), [&]<class T>() {
    if (can_transpose_packed<T>(*p)) return run_transpose_packed<T>(*p, stream);
    run_transpose_padded<T>(*p, stream);
  });
  return true;
}

}  // namespace levin::kernels::cuda
