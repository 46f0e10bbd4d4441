#pragma once
// The geometry of Winograd's convolution: tiles, the phases of a stride of 2, and the shapes that it serves.

#include "kernels/cpu/conv/conv.h"

#include <algorithm>
#include <array>

namespace levin::kernels::cpu::detail {

/// Results of a tile in each direction for a kernel (or one phase of it) of `taps` in each direction.
constexpr int64_t winograd_tile(int64_t taps) { return taps == 5 ? 2 : 4; }

/// The distances of a tile's pixels, at most 6 x 6, from one of them.
using WinogradOffsets = std::array<int64_t, 36>;
/// Returns those from the first of size x size pixels.
inline WinogradOffsets winograd_offsets(int64_t size, int64_t row_step, int64_t pixel_step) {
  WinogradOffsets offsets{};
  for (int64_t i = 0; i < size * size; ++i)
    offsets[static_cast<std::size_t>(i)] = i / size * row_step + i % size * pixel_step;
  return offsets;
}

/// The tiles of a block whose weights, or whose sums of the weight's gradient, do not fit into a second-level cache.
inline constexpr int64_t kWinogradFarTiles = 128;

/// The tiles of one convolution. A stride of 2 makes four phases of the strided side's pixels, every second row and
/// column, each with its own taps x taps of the kernel: of the source's pixels, whose products are summed, or of the
/// result's pixels in the gradient of the input.
struct WinogradPlan {
  bool forward;
  int64_t batch, source_channels, result_channels, source_h, source_w, result_h, result_w, stride, pad_h, pad_w, taps;
  int64_t tiles_h = tiles_of(result_h), tiles_w = tiles_of(result_w);

  int64_t tile() const { return winograd_tile(taps); }
  int64_t input() const { return tile() + taps - 1; }  // pixels of the source that a tile reads in each direction
  int64_t points() const { return input() * input(); }
  int64_t kernel() const { return stride * taps; }
  int64_t phases() const { return stride * stride; }
  int64_t source_phases() const { return forward ? phases() : 1; }
  int64_t result_phases() const { return forward ? 1 : phases(); }
  int64_t result_stride() const { return forward ? 1 : stride; }
  int64_t source_plane() const { return source_h * source_w; }
  int64_t result_plane() const { return result_h * result_w; }
  int64_t tiles() const { return tiles_h * tiles_w; }  // of one image and result phase

 private:
  int64_t tiles_of(int64_t pixels) const {
    const int64_t step = tile() * result_stride();
    return (pixels + step - 1) / step;
  }
};

inline WinogradPlan winograd_forward(const Conv2dShape& s) {
  return {true,    s.batch,  s.in_channels, s.out_channels, s.in_h,    s.in_w,
          s.out_h, s.out_w,  s.stride_h,    s.pad_h,        s.pad_w,   s.kernel_h / s.stride_h};
}
inline WinogradPlan winograd_backward(const Conv2dShape& s) {
  return {false,  s.batch, s.out_channels, s.in_channels, s.out_h, s.out_w,
          s.in_h, s.in_w,  s.stride_h,     s.pad_h,       s.pad_w, s.kernel_h / s.stride_h};
}

/// One phase in one direction: tile t begins at pixel first + step * t of the source; tap i is at kernel position
/// kernel + i * stride, or kernel - i * stride in the gradient of the input.
struct WinogradPhase {
  int64_t first, kernel;

  WinogradPhase(const WinogradPlan& plan, int64_t phase, int64_t pad) {
    if (plan.forward) {
      first = phase - pad;
      kernel = phase;
    } else {
      const int64_t reach = plan.taps - 1;
      first = (phase + pad) / plan.stride - reach;
      kernel = (phase + pad) % plan.stride + reach * plan.stride;
    }
  }
};

/// The passes that have limits of their own: y and the gradient of x, or the gradient of the weight.
enum class WinogradPass { result, weight_gradient };

/// With fewer tiles in the batch, the transforms of the weight or of its gradient cost more than the tiles save.
inline int64_t least_winograd_tiles(const WinogradPlan& plan, WinogradPass pass) {
  const int64_t channels = std::max<int64_t>(1, std::min(plan.source_channels, plan.result_channels));
  if (plan.stride == 2)
    return pass == WinogradPass::result ? 64 : std::clamp<int64_t>(8192 / channels, 32, 96);
  return pass == WinogradPass::result ? std::clamp<int64_t>(1536 / channels, 16, 48)
                                      : std::clamp<int64_t>(4096 / channels, 24, 96);
}

/// True where Winograd was measured to be faster than the direct convolution: channels fill vectors, the tiles pay for
/// the weight's transforms, and images fill half of their tiles. Where a corner's result is the sum of one pixel's
/// terms alone, it takes more of them to allow for a tile's rounding errors, and those of four phases are too many.
inline bool serves_winograd(const Conv2dShape& s, const WinogradPlan& plan, WinogradPass pass) {
  // With so many terms, the measured errors of a corner reach 0.45 (5 x 5) and 0.9 (3 x 3) of the allowed ones.
  const int64_t least_terms = plan.taps == 5 ? 32 : 48;
  const bool same = s.kernel_h == s.kernel_w && s.stride_h == s.stride_w, strided = s.stride_h == 2;
  const bool served = strided ? s.kernel_h == 4 : s.stride_h == 1 && (s.kernel_h == 3 || s.kernel_h == 5);
  if (!same || !served || s.groups != 1 || s.dilation_h != 1 || s.dilation_w != 1) return false;
  const bool whole = s.in_h + 2 * s.pad_h == s.stride_h * (s.out_h - 1) + s.kernel_h &&
                     s.in_w + 2 * s.pad_w == s.stride_w * (s.out_w - 1) + s.kernel_w;
  const int64_t most_pad = std::max(s.pad_h, s.pad_w), least_pad = std::min(s.pad_h, s.pad_w);
  const int64_t corner = plan.forward ? s.kernel_h - most_pad : least_pad / s.stride_h + 1;  // taps of its results
  const int64_t least_channels = strided ? 32 : 16;
  const bool full = !strided || !plan.forward || plan.source_channels % 16 == 0;  // phases are whole vectors
  const int64_t tile = plan.tile() * plan.tile() * plan.result_phases();
  return whole && corner > (strided && plan.forward ? 1 : 0) && full && plan.result_channels >= least_channels &&
         plan.source_channels >= (corner == 1 ? least_terms : least_channels) &&
         2 * plan.result_plane() >= tile * plan.tiles() &&
         plan.batch * plan.tiles() >= least_winograd_tiles(plan, pass);
}

/// Images in strips of whole rows of tiles, and blocks of one strip or, if a strip is a whole image, of a few.
struct WinogradBlocks {
  int64_t rows, strips;    // rows of tiles in a strip, strips of an image
  int64_t at_once, count;  // strips in a block, blocks

  WinogradBlocks(const WinogradPlan& plan, int64_t most_tiles, int64_t least_blocks) {
    rows = std::clamp<int64_t>(most_tiles / plan.tiles_w, 1, plan.tiles_h);
    rows = std::min(rows, std::max<int64_t>(1, plan.batch * plan.tiles_h / least_blocks));
    strips = (plan.tiles_h + rows - 1) / rows;
    rows = (plan.tiles_h + strips - 1) / strips;
    strips = (plan.tiles_h + rows - 1) / rows;
    const int64_t most_images = std::max<int64_t>(1, plan.batch / least_blocks);
    at_once = strips > 1 ? 1 : std::clamp<int64_t>(most_tiles / plan.tiles(), 1, most_images);
    count = (plan.batch * strips + at_once - 1) / at_once;
  }
};

/// Rows of tiles [first, last) of an image, and the rows of pixels that they write.
struct WinogradStrip {
  int64_t image, first, last;
  int64_t result_begin, result_end;

  WinogradStrip(const WinogradPlan& plan, const WinogradBlocks& blocks, int64_t strip)
      : image(strip / blocks.strips), first(strip % blocks.strips * blocks.rows),
        last(std::min(first + blocks.rows, plan.tiles_h)),
        result_begin(first * plan.tile() * plan.result_stride()),
        result_end(std::min(last * plan.tile() * plan.result_stride(), plan.result_h)) {}
};

}  // namespace levin::kernels::cpu::detail
