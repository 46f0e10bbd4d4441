// Chooses between the two ways to multiply by a vector.

#include "kernels/cuda/matmul/gemv.cuh"

#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/matmul/gemv.h"

namespace levin::kernels::cuda {

namespace {

constexpr int kThreads = 32 * kGemvWarps;

template <class Group, class T>
void launch_lines(const Gemv<T>& g, const Epilogue<T>& out, bool vectors, Stream& stream) {
  const auto kernel = vectors ? gemv_lines<Group, T, 16 / static_cast<int>(sizeof(T))> : gemv_lines<Group, T, 1>;
  launch(kernel, {.grid = blocks_of<Group>(g.batch * g.lines, kThreads), .block = kThreads, .stream = stream}, g, out);
}

/// Uses accesses of 16 bytes if all lines and the vector allow it.
template <class T>
bool are_vectors(const Gemv<T>& g) {
  constexpr std::int64_t width = 16 / static_cast<std::int64_t>(sizeof(T));
  const bool dense = g.matrix.step == 1 && g.vector.step == 1 && g.k % width == 0 && g.matrix.line % width == 0;
  bool aligned = reinterpret_cast<std::uintptr_t>(g.matrix.data) % 16 == 0 &&
                 reinterpret_cast<std::uintptr_t>(g.vector.data) % 16 == 0;
  for (int i = 0; i < g.matrix.batch.axes; ++i) {
    aligned &= g.matrix.batch.stride[i] % width == 0 && g.vector.batch.stride[i] % width == 0;
  }
  return dense && aligned;
}

template <class T>
void by_lines(const Gemv<T>& g, const Epilogue<T>& out, Stream& stream) {
  constexpr std::int64_t few = 1024, length = 4096;  // lines too few to keep all warps busy; long enough for a block
  const bool vectors = are_vectors(g);
  if (g.batch * g.lines < few && g.k >= length) return launch_lines<BlockGroup>(g, out, vectors, stream);
  launch_lines<WarpGroup>(g, out, vectors, stream);
}

}  // namespace

template <class T>
void run_gemv(const Problem<T>& p, Stream& stream) {
  constexpr int kDepth = 64;  // parts of K are multiples of it
  const Gemv<T> g(p);
  Epilogue<T> out(p);
  const TileGrid grid = tile_grid(g.lines, 1, g.k, g.batch, 32, 1, kDepth, true);
  const bool columns = g.matrix.line == 1 && g.matrix.step != 1 && fits_launch(grid, g.lines, 1, g.k);
  if (!columns) return by_lines(g, out, stream);
  const Scratch<Sum<T>> parts(stream, grid.splits > 1 ? grid.splits * g.batch * g.lines : 0);
  out.parts = parts.get();
  launch(gemv_columns<T>, {.grid = static_cast<unsigned>(grid.count()), .block = kThreads, .stream = stream}, g, out,
         grid);
  if (grid.splits > 1) launch_add_parts(out, grid.splits, stream);
}

template void run_gemv<float>(const Problem<float>&, Stream&);
template void run_gemv<__half>(const Problem<__half>&, Stream&);
template void run_gemv<__nv_bfloat16>(const Problem<__nv_bfloat16>&, Stream&);

}  // namespace levin::kernels::cuda
