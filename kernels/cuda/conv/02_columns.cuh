#pragma once
// Rung 2: columns in memory, then a matrix product (im2col).
// Idea: a kernel writes each pixel's window as a column, (inputs * kernel) x pixels per image and group; the
// convolution is then a product with the weight, computed by the kernels of matmul. Changes against rung 1: the
// product's tiles; but the columns are kernel_h * kernel_w times as large as the image, and are written and read.
// Bound: memory. Takes float32 and float64, one image after the other.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/conv/shape.cuh"

namespace levin::kernels::cuda {

void matmul(const MatmulArgs& args, Stream& stream);

/// Writes the columns (taps, out_h * out_w) of one group of an image.
template <class T>
__global__ void conv_columns(const T* x, T* columns, ConvShape s) {
  const std::int64_t plane = s.out_plane(), count = s.taps() * plane;
  for (std::int64_t e = global_thread(); e < count; e += grid_threads()) {
    const std::int64_t pixel = e % plane, tap = e / plane, c = tap / s.kernel();
    const int q = static_cast<int>(tap % s.kernel_w), p = static_cast<int>(tap / s.kernel_w % s.kernel_h);
    const std::int64_t h = pixel / s.out_w * s.stride_h - s.padding_h + p * s.dilation_h;
    const std::int64_t v = pixel % s.out_w * s.stride_w - s.padding_w + q * s.dilation_w;
    const bool inside = h >= 0 && h < s.in_h && v >= 0 && v < s.in_w;
    columns[e] = inside ? x[c * s.in_plane() + h * s.in_w + v] : T(0);
  }
}

/// The reverse (col2im): a pixel of x adds up the elements of the columns that hold it. bias (inputs) may be null.
template <class T>
__global__ void conv_columns_backward(const T* columns, const T* bias, T* x, ConvShape s) {
  const std::int64_t count = s.inputs * s.in_plane();
  for (std::int64_t e = global_thread(); e < count; e += grid_threads()) {
    const int v = static_cast<int>(e % s.in_w), h = static_cast<int>(e / s.in_w % s.in_h);
    const std::int64_t c = e / s.in_plane();
    T sum = bias ? bias[c] : T(0);
    for (int p = 0; p < s.kernel_h; ++p) {
      const int from_h = h + s.padding_h - p * s.dilation_h;
      if (from_h < 0 || from_h % s.stride_h != 0 || from_h / s.stride_h >= s.out_h) continue;
      for (int q = 0; q < s.kernel_w; ++q) {
        const int from_w = v + s.padding_w - q * s.dilation_w;
        if (from_w < 0 || from_w % s.stride_w != 0 || from_w / s.stride_w >= s.out_w) continue;
        const std::int64_t tap = (c * s.kernel_h + p) * s.kernel_w + q;
        sum += columns[(tap * s.out_h + from_h / s.stride_h) * s.out_w + from_w / s.stride_w];
      }
    }
    x[e] = sum;
  }
}

/// y (outputs, pixels) of one image and group, initialised with the bias of its channel before the product adds to it.
template <class T>
__global__ void conv_fill_bias(T* y, const T* bias, std::int64_t plane, std::int64_t count) {
  for (std::int64_t e = global_thread(); e < count; e += grid_threads()) y[e] = bias[e / plane];
}

template <class T>
struct ColumnsConv {
  static constexpr DType kType = dtype_of<T>;

  static TensorView matrix(const T* p, std::int64_t rows, std::int64_t columns, bool transposed = false) {
    TensorView v;
    v.pointer = const_cast<T*>(p);
    v.dtype = kType;
    v.sizes = {transposed ? columns : rows, transposed ? rows : columns};
    v.strides = {transposed ? 1 : columns, transposed ? columns : 1};
    return v;
  }
  static void fill(const T* x, T* columns, const ConvShape& s, Stream& stream) {
    launch(conv_columns<T>, {.grid = blocks_for(s.taps() * s.out_plane()), .block = 256, .stream = stream}, x, columns,
           s);
  }

  static void forward(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    const std::int64_t plane = s.out_plane(), taps = s.taps();
    const Scratch<T> columns(stream, taps * plane);
    for (std::int64_t i = 0; i < std::int64_t{s.batch} * s.groups; ++i) {
      const std::int64_t group = i % s.groups;
      T* y = t.y + i * s.outputs * plane;
      fill(t.x + i * s.inputs * s.in_plane(), columns.get(), s, stream);
      if (t.bias) {
        launch(conv_fill_bias<T>, {.grid = blocks_for(s.outputs * plane), .block = 256, .stream = stream}, y,
               t.bias + group * s.outputs, plane, s.outputs * plane);
      }
      matmul({matrix(y, s.outputs, plane),
              matrix(t.weight + group * s.outputs * taps, s.outputs, taps),
              matrix(columns.get(), taps, plane),
              {},
              1.0,
              t.bias ? 1.0 : 0.0},
             stream);
    }
  }

  static void backward_input(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    const std::int64_t plane = s.out_plane(), taps = s.taps();
    const Scratch<T> columns(stream, taps * plane);
    for (std::int64_t i = 0; i < std::int64_t{s.batch} * s.groups; ++i) {
      const std::int64_t group = i % s.groups;
      matmul({matrix(columns.get(), taps, plane),
              matrix(t.weight + group * s.outputs * taps, s.outputs, taps, true),
              matrix(t.y + i * s.outputs * plane, s.outputs, plane),
              {}},
             stream);
      launch(conv_columns_backward<T>, {.grid = blocks_for(s.inputs * s.in_plane()), .block = 256, .stream = stream},
             columns.get(), t.bias ? t.bias + group * s.inputs : nullptr, t.x + i * s.inputs * s.in_plane(), s);
    }
  }

  static void backward_weight(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    const std::int64_t plane = s.out_plane(), taps = s.taps();
    const Scratch<T> columns(stream, taps * plane);
    if (s.batch == 0) {  // a sum of no products
      const std::int64_t rows = std::int64_t{s.groups} * s.outputs;
      return matmul({matrix(t.weight, rows, taps), matrix(t.y, rows, 0), matrix(t.x, 0, taps), {}}, stream);
    }
    for (std::int64_t i = 0; i < std::int64_t{s.batch} * s.groups; ++i) {
      const std::int64_t group = i % s.groups;
      fill(t.x + i * s.inputs * s.in_plane(), columns.get(), s, stream);
      matmul({matrix(t.weight + group * s.outputs * taps, s.outputs, taps),
              matrix(t.y + i * s.outputs * plane, s.outputs, plane),
              matrix(columns.get(), taps, plane, true),
              {},
              1.0,
              i < s.groups ? 0.0 : 1.0},
             stream);
    }
  }
};

}  // namespace levin::kernels::cuda
