#include "kernels/cuda/transpose/transpose.h"

#include "kernels/cuda/transpose/03_padded.cuh"
#include "kernels/cuda/transpose/04_packed.cuh"
#include "kernels/cuda/transpose/ladder.h"

#include <algorithm>
#include <array>
#include <optional>

namespace levin::kernels::cuda {

namespace {

constexpr std::int64_t kThinnest = 8;  ///< with fewer rows or columns most of a tile is empty

/// Returns the copy as a transposition, or nothing if it is not one.
std::optional<TransposeProblem> find_problem(const TensorView& out, const TensorView& x) {
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
    p.sizes[p.dims] = elementwise::Divider(static_cast<std::uint32_t>(plan.size(d)));
    p.strides[0][p.dims] = plan.stride(0, d);
    p.strides[1][p.dims++] = plan.stride(1, d);
    p.planes *= plan.size(d);
  }
  if (p.rows < 2 || p.columns < 2 || p.cut(32) >= std::int64_t{1} << 31) return std::nullopt;
  return p;
}

/// Calls f.operator()<T>() with the unsigned integer type of an element's size.
template <class F>
auto dispatch_size(DType t, F&& f) {
  switch (size_of(t)) {
    case 1:
      return f.template operator()<std::uint8_t>();
    case 2:
      return f.template operator()<std::uint16_t>();
    case 4:
      return f.template operator()<std::uint32_t>();
    default:
      return f.template operator()<std::uint64_t>();
  }
}

bool can_any(const CopyArgs& a) { return find_problem(a.out, a.x).has_value(); }
bool can_packed(const CopyArgs& a) {
  const auto p = find_problem(a.out, a.x);
  return p && dispatch_size(a.out.dtype, [&]<class T>() { return can_transpose_packed<T>(*p); });
}

void run_naive(const CopyArgs& a, Stream& stream) {
  dispatch_size(a.out.dtype, [&]<class T>() { run_transpose_naive<T>(*find_problem(a.out, a.x), stream); });
}
void run_shared_tile(const CopyArgs& a, Stream& stream) {
  dispatch_size(a.out.dtype, [&]<class T>() { run_transpose_shared_tile<T>(*find_problem(a.out, a.x), stream); });
}
void run_padded(const CopyArgs& a, Stream& stream) {
  dispatch_size(a.out.dtype, [&]<class T>() { run_transpose_padded<T>(*find_problem(a.out, a.x), stream); });
}
void run_packed(const CopyArgs& a, Stream& stream) {
  dispatch_size(a.out.dtype, [&]<class T>() { run_transpose_packed<T>(*find_problem(a.out, a.x), stream); });
}

constexpr std::array<TransposeRung, 4> kRungs = {{
    {"01_naive", "an element from where it is to where it goes", can_any, run_naive},
    {"02_shared_tile", "a tile in shared memory", can_any, run_shared_tile},
    {"03_padded", "a column more than the tile needs", can_any, run_padded},
    {"04_packed", "packs, turned in registers", can_packed, run_packed},
}};

}  // namespace

std::span<const TransposeRung> transpose_rungs() { return kRungs; }

bool try_transpose(const TensorView& out, const TensorView& x, const Stream& stream) {
  const auto p = find_problem(out, x);
  if (!p || std::min(p->rows, p->columns) < kThinnest) return false;
  dispatch_size(out.dtype, [&]<class T>() {
    if (can_transpose_packed<T>(*p)) return run_transpose_packed<T>(*p, stream);
    run_transpose_padded<T>(*p, stream);
  });
  return true;
}

}  // namespace levin::kernels::cuda
