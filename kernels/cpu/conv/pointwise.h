#pragma once
// Convolution with a kernel of 1 x 1 without stride and padding: a matrix product for each image.
// Idea: an image is the matrix (C, pixels) already, and pixels are the lanes, so w (O, C) times it is y in place. The
// direct kernel computes pixels with adjacent channels, and then writes and reads them once more to get planes.
// Bound: the memory that holds x and y, or the multipliers from about 64 channels on. Gained over the direct kernel on
// two cores: 1.5 to 2.3 times from 32 to 64 channels and planes of 1,024 pixels or more, 1.1 times at 256 pixels, 0.8
// times at 49, of which the last vectors are mostly padding.

#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/gemm/gemm.h"

#include <levin/core/parallel.h>

#include <algorithm>

namespace levin::kernels::cpu::detail {

/// True for such a kernel, of a shape that was flattened.
inline bool is_pointwise(const Conv2dShape& s) {
  return s.kernel() == 1 && s.in_h == 1 && s.out_h == 1 && s.in_w == s.out_w && s.stride_w == 1 && s.pad_h == 0 &&
         s.pad_w == 0;
}

/// True if pixels fill the lanes, or if the direct kernel, whose lanes are `channels`, could not fill them either.
inline bool serves_pointwise(const Conv2dShape& s, int64_t channels, int64_t direct_channels) {
  constexpr int64_t least_pixels = 128;
  return is_pointwise(s) && (s.in_plane() >= least_pixels || channels < direct_channels);
}

/// Fills y (B, O, pixels) with the bias (O) of its planes.
template <class T>
void fill_with_bias(const Conv2dShape& s, const T* bias, T* y) {
  const int64_t pixels = s.out_plane();
  parallel_for(0, s.batch * s.out_channels, std::max<int64_t>(1, 32768 / pixels), [=](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) std::fill_n(y + p * pixels, pixels, bias[p % s.out_channels]);
  });
}

/// Multiplies a (m, k) by the planes b (k, pixels) of each image, group by group. `g` has m, n, k and beta, the first
/// group's a, and where b and c begin.
template <class T>
void pointwise_products(const Conv2dShape& s, GemmArgs<T> g) {
  g.b_rs = g.c_rs = g.n;
  g.b_cs = 1;
  g.batch = s.batch;
  g.b_bs = s.groups * g.k * g.n;
  g.c_bs = s.groups * g.m * g.n;
  for (int64_t group = 0; group < s.groups; ++group) {
    gemm(g);
    g.a += g.m * g.k;
    g.b += g.k * g.n;
    g.c += g.m * g.n;
  }
}

template <class T>
void pointwise_forward(const Conv2dShape& s, const T* x, const T* w, const T* bias, T* y) {
  const int64_t m = s.group_out(), k = s.group_in();
  if (bias) fill_with_bias(s, bias, y);
  pointwise_products<T>(s, {.m = m,
                            .n = s.out_plane(),
                            .k = k,
                            .a = w,
                            .a_rs = k,
                            .a_cs = 1,
                            .b = x,
                            .c = y,
                            .beta = T(bias ? 1 : 0)});
}

template <class T>
void pointwise_backward_input(const Conv2dShape& s, const T* dy, const T* w, T* dx) {
  const int64_t m = s.group_in(), k = s.group_out();
  pointwise_products<T>(s, {.m = m, .n = s.in_plane(), .k = k, .a = w, .a_rs = 1, .a_cs = m, .b = dy, .c = dx});
}

}  // namespace levin::kernels::cpu::detail
