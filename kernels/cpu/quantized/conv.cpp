// The driver of convolutions with int8 weights. An image is quantized and its channels become the last axis, so that a
// kernel's row is one run of kw * C bytes of it; the windows of a block of pixels are copied next to each other, and
// multiplied with all output channels.
#include "kernels/cpu/quantized/products.h"
#include "kernels/cpu/scratch.h"
#include "kernels/src/table.h"

#include <levin/core/parallel.h>
#include <levin/kernels/quantized/int8.h>

#include <algorithm>
#include <cstring>

namespace levin::kernels {

namespace cpu {

namespace {

constexpr int64_t kPixels = 64;  // of a task

struct Conv {
  const Conv2dInt8Args& args;
  int64_t batch, channels, height, width;           // of x
  int64_t outputs, out_height, out_width;           // of out
  int64_t group_channels, kernel_h, kernel_w;       // of weight
  int64_t padded_h, padded_w, k;                    // the padded image; terms of a sum
  const Int8Ops ops = int8_ops();

  explicit Conv(const Conv2dInt8Args& a)
      : args(a), batch(a.x.size(0)), channels(a.x.size(1)), height(a.x.size(2)), width(a.x.size(3)),
        outputs(a.out.size(1)), out_height(a.out.size(2)), out_width(a.out.size(3)), group_channels(a.weight.size(1)),
        kernel_h(a.weight.size(2)), kernel_w(a.weight.size(3)), padded_h(height + 2 * a.pad_h),
        padded_w(width + 2 * a.pad_w), k(kernel_h * kernel_w * group_channels) {}
  int64_t pixels() const { return out_height * out_width; }
  int64_t group_outputs() const { return outputs / args.groups; }
};

/// Reorders the weight from (O, C, kh, kw) to (O, kh, kw, C) and sums its rows.
void reorder(const Conv& c, std::int8_t* weight, std::int32_t* sums) {
  const auto* from = c.args.weight.data<std::int8_t>();
  const int64_t window = c.kernel_h * c.kernel_w;
  parallel_for(0, c.outputs, std::max<int64_t>(16384 / std::max<int64_t>(c.k, 1), 1), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      sums[o] = 0;
      for (int64_t w = 0; w < window; ++w)
        for (int64_t i = 0; i < c.group_channels; ++i) {
          const std::int8_t value = from[(o * c.group_channels + i) * window + w];
          weight[o * c.k + w * c.group_channels + i] = value;
          sums[o] += value;
        }
    }
  });
}

/// Quantizes an image (C, H, W) into (groups, padded H, padded W, C / groups), whose padding is the zero point.
Int8Steps quantize_image(const Conv& c, const float* x, std::uint8_t* to) {
  const int64_t size = c.channels * c.height * c.width, plane = c.padded_h * c.padded_w * c.group_channels;
  auto* q = scratch<std::uint8_t>(Slot::int8_values, size);  // (C, H, W)
  const Int8Steps s = quantize_int8(c.ops, x, size, q);
  std::memset(to, s.zero, static_cast<std::size_t>(plane * c.args.groups));
  for (int64_t i = 0; i < c.channels; ++i)
    for (int64_t y = 0; y < c.height; ++y) {
      const std::uint8_t* from = q + (i * c.height + y) * c.width;
      std::uint8_t* row = to + i / c.group_channels * plane +
                          ((y + c.args.pad_h) * c.padded_w + c.args.pad_w) * c.group_channels + i % c.group_channels;
      for (int64_t w = 0; w < c.width; ++w) row[w * c.group_channels] = from[w];
    }
  return s;
}

/// Copies the window of output pixel `at` to `to` (kh, kw, C).
void copy_window(const Conv& c, const std::uint8_t* image, int64_t at, std::uint8_t* to) {
  const int64_t y = at / c.out_width * c.args.stride_h, x = at % c.out_width * c.args.stride_w;
  const int64_t run = c.args.dilation_w == 1 ? c.kernel_w * c.group_channels : c.group_channels;
  for (int64_t i = 0; i < c.kernel_h; ++i)
    for (int64_t j = 0; j * run < c.kernel_w * c.group_channels; ++j, to += run)
      std::memcpy(to,
                  image + ((y + i * c.args.dilation_h) * c.padded_w + x + j * c.args.dilation_w) * c.group_channels,
                  static_cast<std::size_t>(run));
}

/// Weights and images in the order of the products.
struct Prepared {
  const std::int8_t* weight;   // (O, kh, kw, C / groups)
  const std::int32_t* sums;    // (O)
  const std::uint8_t* images;  // (B, groups, padded H, padded W, C / groups)
  const Int8Steps* steps;      // (B)
};

/// Computes the outputs of one group of channels at pixels [begin, end) of one image.
void convolve_pixels(const Conv& c, const Prepared& p, int64_t b, int64_t group, int64_t begin, int64_t end) {
  auto* windows = scratch<std::uint8_t>(Slot::int8_windows, kPixels * c.k);
  const std::uint8_t* image =
      p.images + (b * c.args.groups + group) * c.padded_h * c.padded_w * c.group_channels;
  for (int64_t i = begin; i < end; ++i) copy_window(c, image, i, windows + (i - begin) * c.k);
  const Int8Steps s = p.steps[b];
  const auto* scale = c.args.scale.data<float>();
  const auto* bias = c.args.bias.pointer ? c.args.bias.data<float>() : nullptr;
  const int64_t last = (group + 1) * c.group_outputs();
  Int8Tile t;
  t.k = c.k;
  std::int32_t sums[kInt8Rows * kInt8Columns];
  for (int64_t o = group * c.group_outputs(); o < last; o += kInt8Rows) {
    const int64_t rows = std::min<int64_t>(kInt8Rows, last - o);
    for (int64_t r = 0; r < rows; ++r) t.rows[r] = p.weight + (o + r) * c.k;
    for (int64_t i = begin; i < end; i += kInt8Columns) {
      const int64_t columns = std::min<int64_t>(kInt8Columns, end - i);
      for (int64_t j = 0; j < kInt8Columns; ++j) t.columns[j] = windows + (std::min(i + j, end - 1) - begin) * c.k;
      c.ops.tile(t, static_cast<int>(rows), /*rows_unsigned=*/false, sums);
      for (int64_t r = 0; r < rows; ++r) {
        float* out = c.args.out.data<float>() + (b * c.outputs + o + r) * c.pixels() + i;
        const float factor = s.step * scale[o + r], offset = bias ? bias[o + r] : 0.0f;
        const std::int32_t shift = s.zero * p.sums[o + r];
        for (int64_t j = 0; j < columns; ++j)
          out[j] = static_cast<float>(sums[r * kInt8Columns + j] - shift) * factor + offset;
      }
    }
  }
}

void conv_dynamic(const Conv2dInt8Args& args, Stream&) {
  const Conv c(args);
  const int64_t image = c.channels * c.padded_h * c.padded_w;
  auto* weight = scratch<std::int8_t>(Slot::int8_weight, c.outputs * c.k);
  auto* sums = scratch<std::int32_t>(Slot::int8_sums, c.outputs);
  auto* images = scratch<std::uint8_t>(Slot::int8_images, c.batch * image);
  auto* steps = scratch<Int8Steps>(Slot::int8_steps, c.batch);
  reorder(c, weight, sums);
  parallel_for(0, c.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      steps[b] = quantize_image(c, args.x.data<float>() + b * c.channels * c.height * c.width, images + b * image);
  });
  const Prepared prepared{weight, sums, images, steps};
  const int64_t blocks = (c.pixels() + kPixels - 1) / kPixels;
  parallel_for(0, c.batch * args.groups * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % blocks * kPixels, b = task / blocks / args.groups;
      convolve_pixels(c, prepared, b, task / blocks % args.groups, first, std::min(first + kPixels, c.pixels()));
    }
  });
}

}  // namespace

}  // namespace cpu

LEVIN_HOST_ONLY(Conv2dInt8Args, conv2d_int8_dynamic, cpu::conv_dynamic,
                "the composition with float32 values serves other devices");

}  // namespace levin::kernels
