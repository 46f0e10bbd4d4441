// Entry points of conv.h: edge cases, and the choice between plain products, Winograd's, the direct, the depthwise and
// the column path.
#include "kernels/cpu/conv/conv.h"

#include "kernels/cpu/conv/columns.h"
#include "kernels/cpu/conv/depthwise.h"
#include "kernels/cpu/conv/direct.h"
#include "kernels/cpu/conv/pointwise.h"
#include "kernels/cpu/conv/winograd_weight.h"

namespace levin::kernels::cpu {

namespace {

/// Below this many channels in the lane dimension, most lanes would be idle.
constexpr int64_t kDirectChannels = 8;

/// True if the kernel covers the whole image and there is one output pixel: a matrix product of (B, taps) and (O,
/// taps).
bool covers_image(const Conv2dShape& s) {
  return s.groups == 1 && s.out_plane() == 1 && s.pad_h == 0 && s.pad_w == 0 && s.kernel_h == s.in_h &&
         s.kernel_w == s.in_w && s.dilation_h == 1 && s.dilation_w == 1;
}

template <class T>
void forward(const Conv2dShape& shape, const T* x, const T* w, const T* bias, T* y) {
  const Conv2dShape s = detail::flattened(shape);
  if (s.batch * s.out_channels * s.out_plane() == 0) return;
  if (covers_image(s)) {
    return gemm(GemmArgs<T>{.m = s.batch,
                            .n = s.out_channels,
                            .k = s.taps(),
                            .a = x,
                            .a_rs = s.taps(),
                            .a_cs = 1,
                            .b = w,
                            .b_rs = 1,
                            .b_cs = s.taps(),
                            .c = y,
                            .c_rs = s.out_channels,
                            .bias_n = bias});
  }
  if (s.group_out() < kDirectChannels && s.in_plane() > 0 && detail::is_depthwise(s))
    return detail::depthwise_run(detail::forward_plan(s), s, x, w, bias, y);
  if (s.in_plane() > 0 && detail::serves_pointwise(s, s.group_out(), kDirectChannels))
    return detail::pointwise_forward(s, x, w, bias, y);
  if (s.group_out() < kDirectChannels || s.in_plane() == 0 || detail::has_few_pixels(s))
    return detail::columns_forward(s, x, w, bias, y);
  const detail::DirectPlan plan = detail::forward_plan(s);
  const detail::WeightStrides strides{s.taps(), s.kernel(), s.group_out() * s.taps()};
  if constexpr (std::is_same_v<T, float>) {
    const detail::WinogradPlan tiles = detail::winograd_forward(s);
    if (detail::serves_winograd(s, tiles, detail::WinogradPass::result))
      return detail::winograd_run(tiles, plan, x, w, strides, bias, y);
  }
  detail::direct_run(plan, s.batch, s.groups, x, w, strides, bias, y);
}

template <class T>
void backward_input(const Conv2dShape& shape, const T* dy, const T* w, T* dx) {
  const Conv2dShape s = detail::flattened(shape);
  if (s.batch * s.in_channels * s.in_plane() == 0) return;
  if (covers_image(s)) {
    return gemm(GemmArgs<T>{.m = s.batch,
                            .n = s.taps(),
                            .k = s.out_channels,
                            .a = dy,
                            .a_rs = s.out_channels,
                            .a_cs = 1,
                            .b = w,
                            .b_rs = s.taps(),
                            .b_cs = 1,
                            .c = dx,
                            .c_rs = s.taps()});
  }
  if (detail::is_depthwise(s) && s.out_plane() > 0)
    return detail::depthwise_run(detail::backward_plan(s), s, dy, w, static_cast<const T*>(nullptr), dx);
  if (s.out_plane() > 0 && detail::serves_pointwise(s, s.group_in(), kDirectChannels))
    return detail::pointwise_backward_input(s, dy, w, dx);
  if (s.group_in() < kDirectChannels || s.out_plane() == 0) return detail::columns_backward_input(s, dy, w, dx);
  const detail::DirectPlan plan = detail::backward_plan(s);
  const detail::WeightStrides strides{s.kernel(), s.taps(), s.group_out() * s.taps()};
  const T* const no_bias = nullptr;
  if constexpr (std::is_same_v<T, float>) {
    const detail::WinogradPlan tiles = detail::winograd_backward(s);
    if (detail::serves_winograd(s, tiles, detail::WinogradPass::result))
      return detail::winograd_run(tiles, plan, dy, w, strides, no_bias, dx);
  }
  detail::direct_run(plan, s.batch, s.groups, dy, w, strides, no_bias, dx);
}

template <class T>
void backward_weight(const Conv2dShape& shape, const T* x, const T* dy, T* dw) {
  const Conv2dShape s = detail::flattened(shape);
  const int64_t size = s.out_channels * s.taps();
  if (size == 0) return;
  if (s.batch * s.out_plane() == 0) {
    std::fill_n(dw, size, T(0));
    return;
  }
  if (covers_image(s)) {
    return gemm(GemmArgs<T>{.m = s.out_channels,
                            .n = s.taps(),
                            .k = s.batch,
                            .a = dy,
                            .a_rs = 1,
                            .a_cs = s.out_channels,
                            .b = x,
                            .b_rs = s.taps(),
                            .b_cs = 1,
                            .c = dw,
                            .c_rs = s.taps()});
  }
  if (s.group_out() < kDirectChannels && s.in_plane() > 0 && detail::is_depthwise(s))
    return detail::depthwise_backward_weight(s, x, dy, dw);
  if (s.group_out() < kDirectChannels || s.in_plane() == 0) return detail::columns_backward_weight(s, x, dy, dw);
  if constexpr (std::is_same_v<T, float>) {
    if (detail::serves_winograd(s, detail::winograd_forward(s), detail::WinogradPass::weight_gradient))
      return detail::winograd_backward_weight(s, x, dy, dw);
  }
  detail::direct_backward_weight(s, x, dy, dw);
}

}  // namespace

void conv2d_forward(const Conv2dShape& s, const float* x, const float* w, const float* bias, float* y) {
  forward(s, x, w, bias, y);
}
void conv2d_forward(const Conv2dShape& s, const double* x, const double* w, const double* bias, double* y) {
  forward(s, x, w, bias, y);
}
void conv2d_backward_input(const Conv2dShape& s, const float* dy, const float* w, float* dx) {
  backward_input(s, dy, w, dx);
}
void conv2d_backward_input(const Conv2dShape& s, const double* dy, const double* w, double* dx) {
  backward_input(s, dy, w, dx);
}
void conv2d_backward_weight(const Conv2dShape& s, const float* x, const float* dy, float* dw) {
  backward_weight(s, x, dy, dw);
}
void conv2d_backward_weight(const Conv2dShape& s, const double* x, const double* dy, double* dw) {
  backward_weight(s, x, dy, dw);
}

}  // namespace levin::kernels::cpu
