#include "conv/conv.h"
#include "dispatch.h"
#include "kernels/src/table.h"

#include <levin/core/parallel.h>
#include <levin/kernels/conv.h>

#include <algorithm>

namespace levin::kernels {

namespace cpu {

namespace {

Conv2dShape shape_of(const Conv2dArgs& a) {
  Conv2dShape s;
  s.batch = a.x.size(0), s.in_channels = a.x.size(1), s.in_h = a.x.size(2), s.in_w = a.x.size(3);
  s.out_channels = a.weight.size(0), s.kernel_h = a.weight.size(2), s.kernel_w = a.weight.size(3);
  s.stride_h = a.stride_h, s.stride_w = a.stride_w;
  s.pad_h = a.padding_h, s.pad_w = a.padding_w;
  s.dilation_h = a.dilation_h, s.dilation_w = a.dilation_w;
  s.groups = a.groups;
  s.out_h = a.y.size(2), s.out_w = a.y.size(3);
  return s;
}

template <class T>
const T* bias_of(const Conv2dArgs& a) {
  return a.bias.pointer ? a.bias.data<T>() : nullptr;
}

/// Adds bias (C) to x (B, C, H, W).
template <class T>
void add_channel_bias(const TensorView& x, const T* bias) {
  const int64_t channels = x.size(1), plane = x.size(2) * x.size(3);
  T* first = x.data<T>();
  parallel_for(0, x.size(0) * channels, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, plane)),
               [=](int64_t begin, int64_t end) {
                 for (int64_t p = begin; p < end; ++p)
                   for (T *v = first + p * plane, *last = v + plane; v != last; ++v) *v += bias[p % channels];
               });
}

}  // namespace

void conv2d(const Conv2dArgs& a, Stream&) {
  dispatch_wide(a.y.dtype, "conv2d", [&]<class T>() {
    conv2d_forward(shape_of(a), a.x.data<T>(), a.weight.data<T>(), bias_of<T>(a), a.y.data<T>());
  });
}

void conv2d_backward_input(const Conv2dArgs& a, Stream&) {
  dispatch_wide(a.x.dtype, "conv2d_backward_input", [&]<class T>() {
    conv2d_backward_input(shape_of(a), a.y.data<T>(), a.weight.data<T>(), a.x.data<T>());
    if (const T* bias = bias_of<T>(a)) add_channel_bias(a.x, bias);
  });
}

void conv2d_backward_weight(const Conv2dArgs& a, Stream&) {
  dispatch_wide(a.weight.dtype, "conv2d_backward_weight", [&]<class T>() {
    conv2d_backward_weight(shape_of(a), a.x.data<T>(), a.y.data<T>(), a.weight.data<T>());
  });
}

}  // namespace cpu

LEVIN_KERNEL_OF(Conv2dArgs, conv2d, cpu::conv2d, kNot16BitFloats);
LEVIN_KERNEL_OF(Conv2dArgs, conv2d_backward_input, cpu::conv2d_backward_input, kNot16BitFloats);
LEVIN_KERNEL_OF(Conv2dArgs, conv2d_backward_weight, cpu::conv2d_backward_weight, kNot16BitFloats);

}  // namespace levin::kernels
