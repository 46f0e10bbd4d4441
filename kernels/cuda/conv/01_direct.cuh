#pragma once
// Rung 1: the definition.
// Idea: one thread per element of the result loops over channels and taps; for the weight's gradient, one block per
// weight, whose threads share the pixels and add up in a fixed tree. Bound: the cache's bandwidth, two loads per
// multiply-add. Ships for float64, and where a group has so few channels that tiles would be mostly empty.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/base/warp.h"
#include "kernels/cuda/conv/shape.cuh"

namespace levin::kernels::cuda {

template <class T>
__global__ void conv_direct(ConvTensors<T> t, ConvShape s, std::int64_t count) {
  for (std::int64_t e = global_thread(); e < count; e += grid_threads()) {
    const int j = static_cast<int>(e % s.out_w), i = static_cast<int>(e / s.out_w % s.out_h);
    const std::int64_t channel = e / s.out_plane() % (s.groups * s.outputs);
    const std::int64_t item = e / s.out_plane() / (s.groups * s.outputs);
    const T* x = t.x + item * s.x_image() + channel / s.outputs * s.inputs * s.in_plane();
    const T* w = t.weight + channel * s.taps();
    Sum<T> sum = t.bias ? convert<Sum<T>>(t.bias[channel]) : Sum<T>(0);
    for (int c = 0; c < s.inputs; ++c, x += s.in_plane()) {
      for (int p = 0; p < s.kernel_h; ++p) {
        const int h = i * s.stride_h - s.padding_h + p * s.dilation_h;
        for (int q = 0; q < s.kernel_w; ++q, ++w) {
          const int v = j * s.stride_w - s.padding_w + q * s.dilation_w;
          if (h < 0 || h >= s.in_h || v < 0 || v >= s.in_w) continue;
          sum += convert<Sum<T>>(x[static_cast<std::int64_t>(h) * s.in_w + v]) * convert<Sum<T>>(*w);
        }
      }
    }
    t.y[e] = convert<T>(sum);
  }
}

/// Computes the input's gradient: a pixel of x gathers from all pixels of y that read it.
template <class T>
__global__ void conv_direct_backward_input(ConvTensors<T> t, ConvShape s, std::int64_t count) {
  for (std::int64_t e = global_thread(); e < count; e += grid_threads()) {
    const int v = static_cast<int>(e % s.in_w), h = static_cast<int>(e / s.in_w % s.in_h);
    const std::int64_t channel = e / s.in_plane() % (s.groups * s.inputs);
    const std::int64_t item = e / s.in_plane() / (s.groups * s.inputs), group = channel / s.inputs;
    const T* y = t.y + item * s.y_image() + group * s.outputs * s.out_plane();
    const T* w = t.weight + group * s.outputs * s.taps() + channel % s.inputs * s.kernel();
    Sum<T> sum = t.bias ? convert<Sum<T>>(t.bias[channel]) : Sum<T>(0);
    for (int o = 0; o < s.outputs; ++o, y += s.out_plane(), w += s.taps()) {
      for (int p = 0; p < s.kernel_h; ++p) {
        const int from_h = h + s.padding_h - p * s.dilation_h;
        if (from_h < 0 || from_h % s.stride_h != 0 || from_h / s.stride_h >= s.out_h) continue;
        for (int q = 0; q < s.kernel_w; ++q) {
          const int from_w = v + s.padding_w - q * s.dilation_w;
          if (from_w < 0 || from_w % s.stride_w != 0 || from_w / s.stride_w >= s.out_w) continue;
          const std::int64_t pixel = static_cast<std::int64_t>(from_h / s.stride_h) * s.out_w + from_w / s.stride_w;
          sum += convert<Sum<T>>(y[pixel]) * convert<Sum<T>>(w[p * s.kernel_w + q]);
        }
      }
    }
    t.x[e] = convert<T>(sum);
  }
}

/// Computes the weight's gradient: blocks loop over the weights.
template <class T>
__global__ void conv_direct_backward_weight(ConvTensors<T> t, ConvShape s, std::int64_t count) {
  const std::int64_t pixels = s.batch * s.out_plane();
  for (std::int64_t e = blockIdx.x; e < count; e += gridDim.x) {
    const int q = static_cast<int>(e % s.kernel_w), p = static_cast<int>(e / s.kernel_w % s.kernel_h);
    const std::int64_t output = e / s.taps(), input = output / s.outputs * s.inputs + e / s.kernel() % s.inputs;
    Sum<T> sum(0);
    for (std::int64_t n = threadIdx.x; n < pixels; n += blockDim.x) {
      const std::int64_t item = n / s.out_plane(), pixel = n % s.out_plane();
      const std::int64_t h = pixel / s.out_w * s.stride_h - s.padding_h + p * s.dilation_h;
      const std::int64_t v = pixel % s.out_w * s.stride_w - s.padding_w + q * s.dilation_w;
      if (h < 0 || h >= s.in_h || v < 0 || v >= s.in_w) continue;
      sum += convert<Sum<T>>(t.x[item * s.x_image() + input * s.in_plane() + h * s.in_w + v]) *
             convert<Sum<T>>(t.y[item * s.y_image() + output * s.out_plane() + pixel]);
    }
    sum = block_reduce(sum, Plus{}, Sum<T>(0));
    if (threadIdx.x == 0) t.weight[e] = convert<T>(sum);
  }
}

template <class T>
struct DirectConv {
  static void forward(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    const std::int64_t count = s.batch * s.y_image();
    if (count > 0) launch(conv_direct<T>, {.grid = blocks_for(count), .block = 256, .stream = stream}, t, s, count);
  }
  static void backward_input(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    const std::int64_t count = s.batch * s.x_image();
    if (count == 0) return;
    launch(conv_direct_backward_input<T>, {.grid = blocks_for(count), .block = 256, .stream = stream}, t, s, count);
  }
  static void backward_weight(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    const std::int64_t count = s.groups * s.outputs * s.taps();
    if (count == 0) return;
    launch(conv_direct_backward_weight<T>, {.grid = blocks_for(count, 1), .block = 128, .stream = stream}, t, s, count);
  }
};

}  // namespace levin::kernels::cuda
