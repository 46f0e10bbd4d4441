#pragma once
// Rung 3, which ships for float32: implicit GEMM.
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
#include "kernels/cuda/conv/windows.cuh"
#include "kernels/cuda/sgemm/08_async_stages.cuh"

namespace levin::kernels::cuda {

/// Stores a product's columns, which are pixels of a batch of images, as (batch, channels, plane), with one bias per
/// channel.
template <class T>
struct PlaneOut {
  T* data;
  const T* bias;      ///< (groups * rows); may be null
  int rows, columns;  ///< channels of a group; pixels of all images
  FastDivide plane;
  std::int64_t image;  ///< elements of an image
  int width = 1;       ///< number of neighbours that one store may write

  PlaneOut(T* to, const T* channel_bias, std::int64_t channels, std::int64_t groups, std::int64_t batch,
           std::int64_t pixels)
      : data(to),
        bias(channel_bias),
        rows(static_cast<int>(channels)),
        columns(static_cast<int>(batch * pixels)),
        plane(pixels),
        image(groups * channels * pixels) {
    const auto aligned_to = [address = reinterpret_cast<std::uintptr_t>(to)](int elements) {
      return address % (static_cast<std::size_t>(elements) * sizeof(T)) == 0;
    };
    while (width < 4 && pixels % (2 * width) == 0 && aligned_to(2 * width)) width *= 2;
  }

  template <int N>
  __device__ void write(const TilePlace& place, int row, int column, const Sum<T> (&sums)[N]) const {
    if (row >= rows || column >= columns) return;
    const std::int64_t channel = place.batch * rows + row;
    const Sum<T> shift = bias ? convert<Sum<T>>(bias[channel]) : Sum<T>(0);
    int item = plane.quotient(column), pixel = plane.rest(column, item);
    if (N <= width) {
      Pack<T, N> values;
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < N; ++i) values[i] = convert<T>(sums[i] + shift);
      pack_at<N>(data + item * image + channel * plane.divisor + pixel) = values;
      return;
    }
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < N; ++i) {
      if (column + i >= columns) break;
      data[item * image + channel * plane.divisor + pixel] = convert<T>(sums[i] + shift);
      if (++pixel == static_cast<int>(plane.divisor)) pixel = 0, ++item;
    }
  }
};

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
    const PlaneOut<T> y(t.y, t.bias, s.outputs, s.groups, s.batch, s.out_plane());
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
    const PlaneOut<T> x(t.x, t.bias, s.inputs, s.groups, s.batch, s.in_plane());
    Product::run(weight, y, x, grid_of(s.inputs, n, k, s, false), s.inputs, n, k, stream);
  }
};

}  // namespace levin::kernels::cuda
