#pragma once
// The geometry of a convolution as its kernels see it.

#include "kernels/cuda/matmul/problem.cuh"

#include <levin/kernels/conv.h>

#include <algorithm>
#include <iterator>

namespace levin::kernels::cuda {

/// y (batch, groups * outputs, out_h, out_w) of x (batch, groups * inputs, in_h, in_w) and weight (groups * outputs,
/// inputs, kernel_h, kernel_w).
struct ConvShape {
  int batch, groups, inputs, outputs;  ///< channels per group
  int in_h, in_w, kernel_h, kernel_w, out_h, out_w;
  int stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w;

  explicit ConvShape(const Conv2dArgs& a)
      : batch(narrow(a.x.size(0))),
        groups(narrow(a.groups)),
        inputs(narrow(a.weight.size(1))),
        outputs(narrow(a.weight.size(0) / a.groups)),
        in_h(narrow(a.x.size(2))),
        in_w(narrow(a.x.size(3))),
        kernel_h(narrow(a.weight.size(2))),
        kernel_w(narrow(a.weight.size(3))),
        out_h(narrow(a.y.size(2))),
        out_w(narrow(a.y.size(3))),
        stride_h(narrow(a.stride_h)),
        stride_w(narrow(a.stride_w)),
        padding_h(narrow(a.padding_h)),
        padding_w(narrow(a.padding_w)),
        dilation_h(narrow(a.dilation_h)),
        dilation_w(narrow(a.dilation_w)) {}

  __host__ __device__ std::int64_t in_plane() const { return static_cast<std::int64_t>(in_h) * in_w; }
  __host__ __device__ std::int64_t out_plane() const { return static_cast<std::int64_t>(out_h) * out_w; }
  __host__ __device__ std::int64_t kernel() const { return static_cast<std::int64_t>(kernel_h) * kernel_w; }
  __host__ __device__ std::int64_t x_image() const { return in_plane() * inputs * groups; }
  __host__ __device__ std::int64_t y_image() const { return out_plane() * outputs * groups; }
  __host__ __device__ std::int64_t taps() const { return kernel() * inputs; }  ///< weights per output channel

 private:
  static int narrow(std::int64_t x) { return static_cast<int>(x); }  // for sizes of tensors that fit in memory
};

/// True if implicit GEMM can count all indices in 32 bits, with room to add two positions.
inline bool fits_implicit_conv(const ConvShape& s) {
  constexpr std::int64_t most = std::int64_t{1} << 29;
  const std::int64_t places[] = {std::int64_t{s.kernel_h} * s.dilation_h, std::int64_t{s.kernel_w} * s.dilation_w,
                                 std::int64_t{s.out_h} * s.stride_h, std::int64_t{s.out_w} * s.stride_w};
  const std::int64_t lengths[] = {s.batch * s.in_plane(), s.batch * s.out_plane(), s.taps(), s.outputs * s.kernel()};
  return *std::max_element(std::begin(places), std::end(places)) <= most &&
         s.groups * *std::max_element(std::begin(lengths), std::end(lengths)) <= most;
}

template <class T>
inline constexpr int kChunk = 16 / sizeof(T);  ///< channels in 16 bytes
/// Taps along an axis, of the rungs from 5 on: a bit for each in half a word, and one that stays 0.
inline constexpr int kMostTaps = 15;

/// True if the rungs from 5 on can count all chunks of T in 31 bits, and the taps in a word's bits; and if the strides
/// do not divide the input's gradient into too many products.
template <class T>
bool fits_channels_last_conv(const ConvShape& s) {
  constexpr std::int64_t most = 0x7fff0000, spare = 128;  // images beyond the last one, to which a tile may reach
  constexpr std::int64_t most_products = 16;
  const std::int64_t x_chunks = ceil_div(s.inputs, kChunk<T>), y_chunks = ceil_div(s.outputs, kChunk<T>);
  const std::int64_t filters = std::max(s.outputs * x_chunks, s.inputs * y_chunks) * s.kernel();
  const std::int64_t images = (s.batch + spare) * std::max(s.in_plane() * x_chunks, s.out_plane() * y_chunks);
  return fits_implicit_conv(s) && std::max(s.kernel_h, s.kernel_w) <= kMostTaps &&
         std::int64_t{s.stride_h} * s.stride_w <= most_products && s.groups * std::max(filters, images) <= most;
}

/// The three tensors of a convolution, in the device type.
template <class T>
struct ConvTensors {
  T *x, *weight, *y;
  const T* bias;  ///< may be null

  template <class Levin>
  static ConvTensors of(const Conv2dArgs& a) {
    const auto pointer = [](const TensorView& t) {
      return t.pointer ? reinterpret_cast<T*>(t.data<Levin>()) : nullptr;
    };
    return {pointer(a.x), pointer(a.weight), pointer(a.y), pointer(a.bias)};
  }
};

}  // namespace levin::kernels::cuda
