#pragma once
// Rung 3, which ships for float32 where rung 6 does not: implicit GEMM.
// Idea: the matrix product of rung 2 without its columns. The product's kernel finds each element of a window in the
// image when it copies a tile to shared memory; divisions by the image's sizes become multiplications, done once per
// row and once per step of the tile. The three convolutions are products over different indices of the same three
// tensors:
//   forward          y (outputs, pixels of y)   = weight (outputs, taps) windows of x (taps, pixels of y)
//   backward_input   x (inputs, pixels of x)    = weight (inputs, (outputs, kernel)) windows of y (.., pixels of x)
//   backward_weight  weight (outputs, taps)     = y (outputs, pixels of y) windows of x (pixels of y, taps)
// The weight's gradient splits its long sum over pixels into parts, which are added up in order. Changes against rung
// 2: only the images are moved. Bound: the multipliers, and the addresses.

#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/conv/window_out.cuh"
#include "kernels/cuda/sgemm/08_async_stages.cuh"

namespace levin::kernels::cuda {

/// Products of 64 x 64 tiles on the CUDA cores.
struct FloatProduct {
  static constexpr int kDepth = SmallFloatWarps::kDepth;
  template <class A, class B, class Out>
  static void run(const A& a, const B& b, const Out& out, const TileGrid& grid, std::int64_t, std::int64_t,
                  std::int64_t k, const Stream& stream) {
    launch_sgemm<SmallFloatWarps>(a, b, out, grid, k, stream);
  }
};

/// Product: FloatProduct or HalfProduct.
template <class T, class Product>
struct ImplicitConv {
  static TileGrid grid_of(std::int64_t m, std::int64_t n, std::int64_t k, const ConvShape& s, bool split) {
    return tile_grid(m, n, k, s.groups, 64, 64, Product::kDepth, split);
  }

  static Walk windows(const ConvShape& s) {  // the beginnings of the windows of y's pixels in x
    return {s.out_h, s.out_w, s.x_image(), -s.padding_h, s.stride_h, -s.padding_w, s.stride_w};
  }
  static Walk taps(const ConvShape& s) {  // the taps of the channels' filters in x
    return {s.kernel_h, s.kernel_w, s.in_plane(), 0, s.dilation_h, 0, s.dilation_w};
  }

  static void forward(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    const std::int64_t n = s.batch * s.out_plane(), k = s.taps();
    if (n * s.outputs == 0) return;
    StridedOperand<T, Access::along_k> weight{{t.weight, k, 1, {}}, s.outputs};
    weight.x.batch.axes = 1;
    weight.x.batch.size[0] = s.groups, weight.x.batch.stride[0] = s.outputs * k;
    const WindowOperand<T, false, Access::along_lines> x{
        {t.x, windows(s), taps(s), static_cast<int>(n), s.in_h, s.in_w, {}, {}}, s.inputs * s.in_plane()};
    const WindowOut<T> y(t.y, t.bias, s.outputs, s.groups, s.batch, WindowAxis::all(s.out_h), WindowAxis::all(s.out_w),
                         s.out_h, s.out_w);
    Product::run(weight, x, y, grid_of(s.outputs, n, k, s, false), s.outputs, n, k, stream);
  }

  static void backward_input(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    if (s.stride_h == 1 && s.stride_w == 1) return backward_input_strided<false>(t, s, stream);
    backward_input_strided<true>(t, s, stream);
  }

  static void backward_weight(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    const std::int64_t n = s.taps(), k = s.batch * s.out_plane();
    if (n * s.outputs == 0) return;
    const PieceOperand<T> y{{t.y, s.out_plane(), s.outputs, FastDivide(s.out_plane()), s.y_image()},
                            s.outputs * s.out_plane()};
    const WindowOperand<T, false, Access::along_k> x{
        {t.x, taps(s), windows(s), static_cast<int>(n), s.in_h, s.in_w, {}, {}}, s.inputs * s.in_plane()};
    Problem<T> product;
    product.m = s.outputs, product.n = n, product.batch = s.groups;
    product.c = t.weight, product.alpha = 1;
    Epilogue<T> out(product);
    const TileGrid grid = grid_of(s.outputs, n, k, s, true);
    const Scratch<Sum<T>> parts(stream, grid.splits > 1 ? grid.splits * s.groups * s.outputs * n : 0);
    out.parts = parts.get();
    Product::run(y, x, out, grid, s.outputs, n, k, stream);
    if (grid.splits > 1) launch_add_parts(out, grid.splits, stream);
  }

 private:
  template <bool Strided>
  static void backward_input_strided(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    const std::int64_t n = s.batch * s.in_plane(), k = s.outputs * s.kernel();
    if (n * s.inputs == 0) return;
    const PieceOperand<T> weight{{t.weight, s.kernel(), s.inputs, FastDivide(s.kernel()), s.taps()},
                                 s.outputs * s.taps()};
    const Walk pixels(s.in_h, s.in_w, s.y_image(), s.padding_h, 1, s.padding_w, 1);
    const Walk filter(s.kernel_h, s.kernel_w, s.out_plane(), 0, -s.dilation_h, 0, -s.dilation_w);
    const WindowOperand<T, Strided, Access::along_lines> y{
        {t.y, pixels, filter, static_cast<int>(n), s.out_h, s.out_w, FastDivide(s.stride_h), FastDivide(s.stride_w)},
        s.outputs * s.out_plane()};
    const WindowOut<T> x(t.x, t.bias, s.inputs, s.groups, s.batch, WindowAxis::all(s.in_h), WindowAxis::all(s.in_w),
                         s.in_h, s.in_w);
    Product::run(weight, y, x, grid_of(s.inputs, n, k, s, false), s.inputs, n, k, stream);
  }
};

}  // namespace levin::kernels::cuda
