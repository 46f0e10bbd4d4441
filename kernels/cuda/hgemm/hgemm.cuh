#pragma once
// The product of 16-bit floats as it ships: if 16-byte copies can move the operands, rung 10 for large results on
// GPUs that have wgmma and the copy engine, and rung 7 for others, else rung 8; the tile depends on the size of C.

#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/hgemm/08_any_operand.cuh"
#include "kernels/cuda/hgemm/10_copy_engine.cuh"
#include "kernels/cuda/matmul/choice.h"

namespace levin::kernels::cuda {

/// Launches a rung's kernel of persistent blocks with `shared` bytes, of which `resident` fit on a multiprocessor.
template <class Tiles, class Activation, class Kernel>
void run_hgemm_tiles(Kernel kernel, std::size_t shared, const Problem<typename Tiles::T>& p, int resident,
                     Stream& stream) {
  TileGrid grid = tile_grid(p.m, p.n, p.k, p.batch, Tiles::kM, Tiles::kN, Tiles::kDepth, true);
  grid.group = 8;
  Epilogue<typename Tiles::T, Activation> out(p);
  const Scratch<float> parts(stream, grid.splits > 1 ? grid.splits * p.batch * p.m * p.n : 0);
  out.parts = parts.get();
  const std::int64_t most = attribute_of(stream, cudaDevAttrMultiProcessorCount) * resident;
  launch(kernel,
         {.grid = static_cast<unsigned>(std::min(grid.count(), most)),
          .block = Tiles::kThreads,
          .shared = shared,
          .stream = stream},
         p, out, grid);
  if (grid.splits > 1) launch_add_parts(out, grid.splits, stream);
}

template <class T>
bool can_hgemm_any_operand(const Problem<T>& p) {
  return fits_launch(tile_grid(p.m, p.n, p.k, p.batch, 64, 64, 64, true), p.m, p.n, p.k);
}

template <class T>
bool can_hgemm_persistent(const Problem<T>& p) {
  return can_hgemm_any_operand(p) && vector_ready(p.a) && vector_ready(p.b);
}

template <class Tiles, class Activation>
void run_persistent_tiles(const Problem<typename Tiles::T>& p, int resident, Stream& stream) {
  run_hgemm_tiles<Tiles, Activation>(hgemm_persistent<Tiles, kHalfStages, Epilogue<typename Tiles::T, Activation>>,
                                     kHalfShared<Tiles>, p, resident, stream);
}

template <class T, Layout a, Layout b, class Activation>
void run_hgemm_persistent(const Problem<T>& p, Stream& stream) {
  using Large = LargeHalfTiles<T, a, b>;
  const std::int64_t tiles = ceil_div(p.m, Large::kM) * ceil_div(p.n, Large::kN) * p.batch;
  if (tiles >= 64 && has_shared(stream, kHalfShared<Large>)) {
    run_persistent_tiles<Large, Activation>(p, 1, stream);
  } else {
    run_persistent_tiles<SmallHalfTiles<T, a, b>, Activation>(p, 4, stream);
  }
}
template <class T>
void run_hgemm_persistent(const Problem<T>& p, Stream& stream) {
  with_layouts(p, [&]<Layout a, Layout b>() { run_hgemm_persistent<T, a, b, Identity>(p, stream); });
}

template <class T>
bool can_hgemm_warpgroups(const Problem<T>& p, const Stream& stream) {
  return can_hgemm_persistent(p) && attribute_of(stream, cudaDevAttrComputeCapabilityMajor) == 9;
}

/// Returns the number of blocks that a rung's tiles give work to, parts of K included.
template <class Tiles>
std::int64_t blocks_of(const Problem<typename Tiles::T>& p) {
  return tile_grid(p.m, p.n, p.k, p.batch, Tiles::kM, Tiles::kN, Tiles::kDepth, true).count();
}

template <class T>
bool can_hgemm_copy_engine(const Problem<T>& p, const Stream& stream) {
  return can_hgemm_warpgroups(p, stream) && p.k > 0 && fits_map(p.a, p.m, p.k) && fits_map(p.b, p.n, p.k);
}

template <class Tiles, class Activation>
void run_copy_engine_tiles(const Problem<typename Tiles::T>& p, Stream& stream) {
  using T = typename Tiles::T;
  TileGrid grid = tile_grid(p.m, p.n, p.k, p.batch, Tiles::kM, Tiles::kN, Tiles::kDepth, true);
  grid.group = 8;
  Epilogue<T, Activation> out(p);
  const Scratch<float> parts(stream, grid.splits > 1 ? grid.splits * p.batch * p.m * p.n : 0);
  out.parts = parts.get();
  const std::int64_t most = attribute_of(stream, cudaDevAttrMultiProcessorCount);
  launch(hgemm_copy_engine<Tiles, Epilogue<T, Activation>>,
         {.grid = static_cast<unsigned>(std::min(grid.count(), most)),
          .block = BulkTiles<Tiles>::kThreads,
          .shared = BulkTiles<Tiles>::kShared,
          .stream = stream},
         map_operand<typename Tiles::A>(p.a, p.m, p.k), map_operand<typename Tiles::B>(p.b, p.n, p.k), out, grid);
  if (grid.splits > 1) launch_add_parts(out, grid.splits, stream);
}

template <class T, Layout a, Layout b, class Activation>
void run_hgemm_copy_engine(const Problem<T>& p, Stream& stream) {
  if (blocks_of<LargeGroupTiles<T, a, b>>(p) >= 100)
    return run_copy_engine_tiles<LargeGroupTiles<T, a, b>, Activation>(p, stream);
  run_copy_engine_tiles<SmallGroupTiles<T, a, b>, Activation>(p, stream);
}
template <class T>
void run_hgemm_copy_engine(const Problem<T>& p, Stream& stream) {
  with_layouts(p, [&]<Layout a, Layout b>() { run_hgemm_copy_engine<T, a, b, Identity>(p, stream); });
}

/// Runs rung 10 if its tiles give work to at least 64 blocks, else rung 7, whose tiles are smaller.
template <class T, Layout a, Layout b, class Activation>
void run_hgemm(const Problem<T>& p, Stream& stream) {
  if (can_hgemm_copy_engine(p, stream) && blocks_of<SmallGroupTiles<T, a, b>>(p) >= 64)
    return run_hgemm_copy_engine<T, a, b, Activation>(p, stream);
  run_hgemm_persistent<T, a, b, Activation>(p, stream);
}
template <class T>
void run_hgemm(const Problem<T>& p, Stream& stream) {
  with_layouts(p, [&]<Layout a, Layout b>() { run_hgemm<T, a, b, Identity>(p, stream); });
}

template <class T, Access access_a, Access access_b, class Activation>
void run_hgemm_gathered(const Problem<T>& p, Stream& stream) {
  const TileGrid grid = tile_grid(p.m, p.n, p.k, p.batch, 64, 64, 64, true);
  Epilogue<T, Activation> out(p);
  const Scratch<float> parts(stream, grid.splits > 1 ? grid.splits * p.batch * p.m * p.n : 0);
  out.parts = parts.get();
  launch_hgemm_any_operand<T>(StridedOperand<T, access_a>{p.a, p.m}, StridedOperand<T, access_b>{p.b, p.n}, out, grid,
                              p.m, p.n, p.k, stream);
  if (grid.splits > 1) launch_add_parts(out, grid.splits, stream);
}

template <class T>
void run_hgemm_any_operand(const Problem<T>& p, Stream& stream) {
  constexpr Access k = Access::along_k, l = Access::along_lines;
  const Access a = element_access(p.a), b = element_access(p.b);
  if (a == k && b == k) return run_hgemm_gathered<T, k, k, Identity>(p, stream);
  if (a == k) return run_hgemm_gathered<T, k, l, Identity>(p, stream);
  if (b == k) return run_hgemm_gathered<T, l, k, Identity>(p, stream);
  run_hgemm_gathered<T, l, l, Identity>(p, stream);
}

// Instantiated in ships_f16.cu, ships_bf16.cu and any_operand.cu.
extern template void run_hgemm_persistent<__half>(const Problem<__half>&, Stream&);
extern template void run_hgemm_persistent<__nv_bfloat16>(const Problem<__nv_bfloat16>&, Stream&);
extern template void run_hgemm_copy_engine<__half>(const Problem<__half>&, Stream&);
extern template void run_hgemm_copy_engine<__nv_bfloat16>(const Problem<__nv_bfloat16>&, Stream&);
extern template void run_hgemm<__half>(const Problem<__half>&, Stream&);
extern template void run_hgemm<__nv_bfloat16>(const Problem<__nv_bfloat16>&, Stream&);
extern template void run_hgemm_any_operand<__half>(const Problem<__half>&, Stream&);
extern template void run_hgemm_any_operand<__nv_bfloat16>(const Problem<__nv_bfloat16>&, Stream&);

}  // namespace levin::kernels::cuda
