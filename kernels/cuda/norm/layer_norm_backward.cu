// Gradients of layer norm: one kernel computes dx and each block's sums for dweight and dbias, another adds these up.
#include "kernels/cuda/norm/layer_norm_backward.cuh"
#include "kernels/cuda/reduce/run.cuh"

#include <algorithm>

namespace levin::kernels::cuda {

namespace {

/// out (n) = the sum over the blocks of partial (blocks, 2, n), where `from` points to the first line.
template <class C>
void add_blocks(const TensorView& out, const C* from, std::int64_t blocks, std::int64_t n, Stream& stream) {
  TensorView lines = out, sums = out;
  lines.pointer = const_cast<C*>(from);
  lines.dtype = dtype_of<C>;
  lines.sizes = {blocks, n};
  lines.strides = {2 * n, 1};
  sums.sizes = {1, n};
  sums.strides = {n, 1};
  reduce<C>(SumOf{}, sums, lines, {}, stream);
}

/// Returns the elements per thread, 4, 8 or 16 floats; 0 if no block can hold the row.
template <class T>
int elements_for(std::int64_t n) {
  for (int elements = 4; elements <= (sizeof(T) == 8 ? 8 : 16); elements *= 2) {
    if (n <= std::int64_t{kGradientThreads} * elements) return elements;
  }
  return 0;
}

template <class T, int kWidth>
void launch_gradient(const LayerGradient<T>& l, int elements, unsigned blocks, Stream& stream) {
  constexpr int kLeast = kWidth > 4 ? kWidth : 4, kMost = sizeof(T) == 8 ? 8 : 16;
  elements = std::max(elements, kLeast);
  const auto kernel = elements == 4   ? layer_norm_gradient<T, kWidth, kLeast>
                      : elements == 8 ? layer_norm_gradient<T, kWidth, 8>
                                      : layer_norm_gradient<T, kWidth, kMost>;
  const auto threads = static_cast<unsigned>(ceil_div(ceil_div(l.n, elements), 32) * 32);
  launch(kernel, {.grid = blocks, .block = threads, .stream = stream}, l);
}

template <class T>
bool are_aligned(const LayerGradient<T>& l) {
  bool aligned = l.n % (16 / static_cast<int>(sizeof(T))) == 0;
  for (const void* p : {static_cast<const void*>(l.g), static_cast<const void*>(l.x), static_cast<const void*>(l.dx)}) {
    aligned &= reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
  }
  return aligned;
}

template <class T>
void backward(const LayerNormBackwardArgs& a, Stream& stream) {
  using C = ComputeType<T>;
  constexpr std::int64_t kMostBlocks = 1024, kLeastRows = 4;
  const bool sums = a.dweight.pointer || a.dbias.pointer;
  LayerGradient<T> l{elements<const T>(a.g),
                     elements<const T>(a.x),
                     elements<const T>(a.weight),
                     elements<const C>(a.mean),
                     elements<const C>(a.rstd),
                     elements<T>(a.dx),
                     nullptr,
                     a.rows,
                     a.columns,
                     std::max(kLeastRows, ceil_div(a.rows, kMostBlocks))};
  const std::int64_t blocks = ceil_div(l.rows, l.each);
  Scratch<C> partial(stream, sums ? blocks * 2 * l.n : 0);
  l.partial = partial.get();
  const int elements = elements_for<T>(l.n);
  const auto grid = static_cast<unsigned>(blocks);
  if (elements > 0 && are_aligned(l)) {
    launch_gradient<T, 16 / static_cast<int>(sizeof(T))>(l, elements, grid, stream);
  } else if (elements > 0) {
    launch_gradient<T, 1>(l, elements, grid, stream);
  } else {
    if (l.dx) {
      launch(layer_norm_gradient_rows<T>,
             {.grid = static_cast<unsigned>(l.rows), .block = kGradientThreads, .stream = stream}, l);
    }
    if (sums) {
      launch(layer_norm_gradient_columns<T>,
             {.grid = dim3(grid, static_cast<unsigned>(ceil_div(l.n, 256))), .block = 256, .stream = stream}, l);
    }
  }
  if (a.dweight.pointer) add_blocks<C>(a.dweight, partial.get(), blocks, l.n, stream);
  if (a.dbias.pointer) add_blocks<C>(a.dbias, partial.get() + l.n, blocks, l.n, stream);
}

}  // namespace

void layer_norm_backward(const LayerNormBackwardArgs& a, Stream& stream) {
  if (a.columns == 0) return;
  dispatch_floats(a.x.dtype, "layer_norm_backward", [&]<class T>() { backward<T>(a, stream); });
}

}  // namespace levin::kernels::cuda
