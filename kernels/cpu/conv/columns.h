#pragma once
// Convolution as a matrix product: the first rung, and the path for fewer than eight channels in the lane dimension and
// for few pixels.
// Idea: write each output pixel's inputs as a column, (taps, pixels), then call gemm; pixels are the lanes. Bound:
// writing and reading the column matrix, taps times the image, of which a product reads each element few times. With
// few pixels that matrix is small, and the product reads the larger operand in place: the weight, which other rungs
// pack. Gained over the direct kernel for one image on two cores: 2.2 times at 512 channels of 4 x 4 pixels, 1.2 times
// from 128 to 256 channels of 8 x 8 pixels.

#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/scratch.h"

#include <levin/core/parallel.h>

#include <algorithm>
#include <cstring>

namespace levin::kernels::cpu::detail {

/// Returns the output columns [first, second) whose input lies inside the image for kernel column kx.
inline std::pair<int64_t, int64_t> valid_columns(const Conv2dShape& s, int64_t kx) {
  const int64_t shift = kx * s.dilation_w - s.pad_w;  // x = ox * stride + shift
  const int64_t low = shift < 0 ? (-shift + s.stride_w - 1) / s.stride_w : 0;
  const int64_t high = s.in_w - 1 - shift < 0 ? 0 : (s.in_w - 1 - shift) / s.stride_w + 1;
  return {std::min(low, s.out_w), std::clamp(high, std::min(low, s.out_w), s.out_w)};
}

/// True for one image of so few pixels that packing the weight would take longer than the product.
inline bool has_few_pixels(const Conv2dShape& s) {
  constexpr int64_t least_pixels = 8, most_pixels = 64;
  return s.groups == 1 && s.batch == 1 && s.out_plane() >= least_pixels && s.out_plane() <= most_pixels;
}

/// Calls f(column row of out_w elements, input line or null, first valid column, end, first input column) for each
/// output row of each tap of one image's group.
template <class C, class F>
void for_each_column_row(const Conv2dShape& s, C* columns, F&& f) {
  for (int64_t tap = 0; tap < s.taps(); ++tap) {
    const int64_t channel = tap / s.kernel(), ky = tap % s.kernel() / s.kernel_w, kx = tap % s.kernel_w;
    const auto [low, high] = valid_columns(s, kx);
    for (int64_t oy = 0; oy < s.out_h; ++oy, columns += s.out_w) {
      const int64_t y = oy * s.stride_h + ky * s.dilation_h - s.pad_h;
      const bool inside = y >= 0 && y < s.in_h;
      f(columns, inside ? channel * s.in_plane() + y * s.in_w : -1, low, high,
        low * s.stride_w + kx * s.dilation_w - s.pad_w);
    }
  }
}

/// Copies (C, H, W) to (taps, pixels).
template <class T>
void to_columns(const Conv2dShape& s, const T* image, T* columns) {
  for_each_column_row(s, columns, [&](T* row, int64_t line, int64_t low, int64_t high, int64_t x) {
    if (line < 0) low = high = 0;
    std::fill(row, row + low, T(0));
    for (int64_t o = low; o < high; ++o, x += s.stride_w) row[o] = image[line + x];
    std::fill(row + high, row + s.out_w, T(0));
  });
}

/// Copies every stride-th of `count` elements; short whole rows by one move.
template <class T>
void copy_strided(const T* from, int64_t stride, int64_t count, T* to) {
  if (stride != 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
  } else if (count == 4) {
    std::memcpy(to, from, 4 * sizeof(T));
  } else if (count == 8) {
    std::memcpy(to, from, 8 * sizeof(T));
  } else {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
  }
}

/// Copies (C, H, W) to (taps, pixels) by a padded copy of the image, whose rows need no tests: faster for short rows.
template <class T>
void to_columns_padded(const Conv2dShape& s, const T* image, T* columns) {
  constexpr int64_t task_elements = 16384;
  const int64_t width = s.in_w + 2 * s.pad_w, plane = (s.in_h + 2 * s.pad_h) * width, channels = s.group_in();
  T* padded = scratch<T>(Slot::conv_source, channels * plane);  // (C, H + 2 pad, W + 2 pad)
  const int64_t grain = std::max<int64_t>(1, task_elements / (s.kernel() * s.out_plane()));
  parallel_for(0, channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      T* to = padded + c * plane;
      std::fill_n(to, plane, T(0));
      for (int64_t y = 0; y < s.in_h; ++y)
        std::copy_n(image + (c * s.in_h + y) * s.in_w, s.in_w, to + (y + s.pad_h) * width + s.pad_w);
      T* row = columns + c * s.kernel() * s.out_plane();
      for (int64_t ky = 0; ky < s.kernel_h; ++ky)
        for (int64_t kx = 0; kx < s.kernel_w; ++kx)
          for (int64_t oy = 0; oy < s.out_h; ++oy, row += s.out_w)
            copy_strided(to + (oy * s.stride_h + ky * s.dilation_h) * width + kx * s.dilation_w, s.stride_w, s.out_w,
                         row);
    }
  });
}

/// Adds (taps, pixels) back into (C, H, W).
template <class T>
void add_columns(const Conv2dShape& s, const T* columns, T* image) {
  for_each_column_row(s, columns, [&](const T* row, int64_t line, int64_t low, int64_t high, int64_t x) {
    if (line < 0) return;
    for (int64_t o = low; o < high; ++o, x += s.stride_w) image[line + x] += row[o];
  });
}

/// Runs f(item = image * groups + group, columns) for all items, in parallel.
template <class T, class F>
void for_each_item(const Conv2dShape& s, int64_t items, F&& f) {
  parallel_for(0, items, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i, scratch<T>(Slot::conv_columns, s.taps() * s.out_plane()));
  });
}

template <class T>
void columns_forward(const Conv2dShape& s, const T* x, const T* w, const T* bias, T* y) {
  const int64_t m = s.group_out(), n = s.out_plane(), k = s.taps();
  for_each_item<T>(s, s.batch * s.groups, [&](int64_t item, T* columns) {
    const int64_t group = item % s.groups;
    T* out = y + item * m * n;
    const T* image = x + item * s.group_in() * s.in_plane();
    has_few_pixels(s) ? to_columns_padded(s, image, columns) : to_columns(s, image, columns);
    if (bias) {
      for (int64_t c = 0; c < m; ++c) std::fill_n(out + c * n, n, bias[group * m + c]);
    }
    gemm(GemmArgs<T>{.m = m,
                     .n = n,
                     .k = k,
                     .a = w + group * m * k,
                     .a_rs = k,
                     .a_cs = 1,
                     .b = columns,
                     .b_rs = n,
                     .b_cs = 1,
                     .c = out,
                     .c_rs = n,
                     .beta = T(bias ? 1 : 0)});
  });
}

template <class T>
void columns_backward_input(const Conv2dShape& s, const T* dy, const T* w, T* dx) {
  const int64_t m = s.taps(), n = s.out_plane(), k = s.group_out();
  for_each_item<T>(s, s.batch * s.groups, [&](int64_t item, T* columns) {
    T* image = dx + item * s.group_in() * s.in_plane();
    gemm(GemmArgs<T>{.m = m,
                     .n = n,
                     .k = k,
                     .a = w + item % s.groups * m * k,
                     .a_rs = 1,
                     .a_cs = m,
                     .b = dy + item * k * n,
                     .b_rs = n,
                     .b_cs = 1,
                     .c = columns,
                     .c_rs = n});
    std::fill_n(image, s.group_in() * s.in_plane(), T(0));
    add_columns(s, columns, image);
  });
}

/// Sums chunks of images separately, then adds them in order.
template <class T>
void columns_backward_weight(const Conv2dShape& s, const T* x, const T* dy, T* dw) {
  constexpr int64_t most_chunks = 16;
  const int64_t m = s.group_out(), n = s.taps(), k = s.out_plane(), size = s.out_channels * n;
  const int64_t chunks = std::min(most_chunks, s.batch);
  T* sums = scratch<T>(Slot::conv_sums, chunks * size);  // (chunks, O, taps)
  for_each_item<T>(s, chunks * s.groups, [&](int64_t task, T* columns) {
    const int64_t chunk = task / s.groups, group = task % s.groups;
    const int64_t first = s.batch * chunk / chunks, last = s.batch * (chunk + 1) / chunks;
    for (int64_t image = first; image < last; ++image) {
      const int64_t item = image * s.groups + group;
      to_columns(s, x + item * s.group_in() * s.in_plane(), columns);
      gemm(GemmArgs<T>{.m = m,
                       .n = n,
                       .k = k,
                       .a = dy + item * m * k,
                       .a_rs = k,
                       .a_cs = 1,
                       .b = columns,
                       .b_rs = 1,
                       .b_cs = k,
                       .c = sums + task * m * n,
                       .c_rs = n,
                       .beta = T(image > first ? 1 : 0)});
    }
  });
  parallel_for(0, size, 4096, [&](int64_t begin, int64_t end) {
    std::copy(sums + begin, sums + end, dw + begin);
    for (int64_t chunk = 1; chunk < chunks; ++chunk) {
      for (int64_t i = begin; i < end; ++i) dw[i] += sums[chunk * size + i];
    }
  });
}

}  // namespace levin::kernels::cpu::detail
