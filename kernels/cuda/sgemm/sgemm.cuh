#pragma once
// The float32 product as it ships: rung 8, or rung 9 if TF32 is allowed; the tile depends on the size of C.

#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/matmul/choice.h"
#include "kernels/cuda/sgemm/09_tf32.cuh"

namespace levin::kernels::cuda {

template <class Warps, Access access_a, Access access_b, class Activation>
void run_sgemm_tiles(const Problem<float>& p, Stream& stream) {
  const TileGrid grid = tile_grid(p.m, p.n, p.k, p.batch, Warps::kM, Warps::kN, Warps::kDepth, true);
  Epilogue<float, Activation> out(p);
  const Scratch<float> parts(stream, grid.splits > 1 ? grid.splits * p.batch * p.m * p.n : 0);
  out.parts = parts.get();
  launch_sgemm<Warps>(StridedOperand<float, access_a>{p.a, p.m}, StridedOperand<float, access_b>{p.b, p.n}, out, grid,
                      p.k, stream);
  if (grid.splits > 1) launch_add_parts(out, grid.splits, stream);
}

/// Large tiles copy 16 bytes at once along the lines, or single floats along k.
template <class Warps, class Activation>
void run_sgemm_large(const Problem<float>& p, Stream& stream) {
  constexpr Access k = Access::along_k, v = Access::vectors;
  const bool a = p.a.line == 1 && vector_ready(p.a), b = p.b.line == 1 && vector_ready(p.b);
  if (a && b) return run_sgemm_tiles<Warps, v, v, Activation>(p, stream);
  if (a) return run_sgemm_tiles<Warps, v, k, Activation>(p, stream);
  if (b) return run_sgemm_tiles<Warps, k, v, Activation>(p, stream);
  run_sgemm_tiles<Warps, k, k, Activation>(p, stream);
}

template <class Warps, class Activation>
void run_sgemm_small(const Problem<float>& p, Stream& stream) {
  constexpr Access k = Access::along_k, l = Access::along_lines;
  const Access a = element_access(p.a), b = element_access(p.b);
  if (a == k && b == k) return run_sgemm_tiles<Warps, k, k, Activation>(p, stream);
  if (a == k) return run_sgemm_tiles<Warps, k, l, Activation>(p, stream);
  if (b == k) return run_sgemm_tiles<Warps, l, k, Activation>(p, stream);
  run_sgemm_tiles<Warps, l, l, Activation>(p, stream);
}

/// True if run_sgemm_large() supports the access that both operands need.
inline bool copyable_large(const Problem<float>& p) {
  const auto copyable = [](const Operand<float>& x) { return element_access(x) == Access::along_k || vector_ready(x); };
  return copyable(p.a) && copyable(p.b);
}

/// True if there are enough tiles of side 128 to fill the device.
inline bool large_sgemm(const Problem<float>& p) {
  return ceil_div(p.m, 128) * ceil_div(p.n, 128) * p.batch >= 96 && copyable_large(p);
}

inline bool can_sgemm(const Problem<float>& p) {
  return fits_launch(tile_grid(p.m, p.n, p.k, p.batch, 64, 64, 16, true), p.m, p.n, p.k);
}
inline bool can_sgemm_tf32(const Problem<float>& p) { return can_sgemm(p) && copyable_large(p); }

template <class Activation>
void run_sgemm_async_stages(const Problem<float>& p, Stream& stream) {
  if (large_sgemm(p)) return run_sgemm_large<LargeFloatWarps, Activation>(p, stream);
  run_sgemm_small<SmallFloatWarps, Activation>(p, stream);
}

// Instantiated in async_stages.cu and tf32.cu.
extern template void run_sgemm_async_stages<Identity>(const Problem<float>&, Stream&);
extern template void run_sgemm_large<Tf32Warps, Identity>(const Problem<float>&, Stream&);

}  // namespace levin::kernels::cuda
