#pragma once
// Winograd's convolution F(4 x 4, 3 x 3): the shipped path for float 3 x 3 kernels without stride, dilation and groups,
// from 16 channels on and where there are tiles enough (serves_winograd). Idea: a tile of 4 x 4 results needs 6 x 6
// pixels of the source. In a basis in which convolution is multiplication at 36 points, it takes 36 products instead of
// 144; summed over the channels they are 36 matrix products of tiles by weights. Changes compared with direct.h: a
// quarter of the multiply-adds, for transforms that are additions. Bound: the multipliers for half of the time; the
// rest moves planes into and out of the lanes' layout at the memory's rate. Gained over direct.h on two cores with
// AVX-512: 2.3 times from 32 to 64 channels of 26 x 26 (1,170 GFLOP/s in the direct count, where the multipliers reach
// 545), 2.6 times for 64 channels of 56 x 56, 1.6 times for 16 channels; the gradient of the weight 2.0 to 2.3 times.
//
// The method is that of Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016. Its points 0, 1, -1,
// 2, -2 make the error five times that of a plain sum. With sqrt(1/2) and sqrt(2) instead of 1 and 2 it is two to three
// times (on the choice: Barabasz et al., "Error analysis and improving the accuracy of Winograd convolution for deep
// neural networks", 2020), which fits the error model, so that the smaller F(2 x 2, 3 x 3) is not needed.
//
// The order of the work is that of oneDNN: a task takes a block of tiles all the way from the planes to the results, so
// that transformed tiles stay in L2; only the weights are transformed for all tasks. The transforms' lanes are
// channels, as in ncnn, which suit images of any width. Both libraries keep such a layout between layers; here a task's
// planes are transposed on the way in and out.

#include "kernels/cpu/conv/direct.h"

#include <algorithm>
#include <cstdint>

namespace levin::kernels::cpu::detail {

inline constexpr int64_t kWinogradTile = 4, kWinogradInput = 6, kWinogradPoints = 36, kWinogradKernel = 9;

/// With fewer tiles, the transforms of the weight or of its gradient cost more than the tiles save.
inline constexpr int64_t kWinogradTiles = 48, kWinogradWeightTiles = 96;

/// The tiles of one convolution: result pixel r reads the source's pixels r + origin to r + origin + 2, in both
/// directions.
struct WinogradPlan {
  int64_t batch, source_channels, result_channels;
  int64_t source_h, source_w, result_h, result_w, origin_h, origin_w;
  int64_t tiles_h = (result_h + kWinogradTile - 1) / kWinogradTile;
  int64_t tiles_w = (result_w + kWinogradTile - 1) / kWinogradTile;

  int64_t source_plane() const { return source_h * source_w; }
  int64_t result_plane() const { return result_h * result_w; }
  int64_t tiles() const { return tiles_h * tiles_w; }  // of one image
};

inline WinogradPlan winograd_forward(const Conv2dShape& s) {
  return {s.batch, s.in_channels, s.out_channels, s.in_h, s.in_w, s.out_h, s.out_w, -s.pad_h, -s.pad_w};
}
inline WinogradPlan winograd_backward(const Conv2dShape& s) {
  return {s.batch, s.out_channels, s.in_channels, s.out_h, s.out_w, s.in_h, s.in_w, s.pad_h - 2, s.pad_w - 2};
}

/// True where Winograd was measured to be faster than the direct convolution: `least_tiles` pay for the weight's
/// transforms, and images fill half of their tiles. Where a corner's result is the sum of one pixel's terms alone, it
/// takes more of them to allow for a tile's rounding errors.
inline bool serves_winograd(const Conv2dShape& s, const WinogradPlan& plan, int64_t least_tiles) {
  constexpr int64_t least_channels = 16, least_terms = 48;
  const auto whole = [](int64_t origin, int64_t source, int64_t result) {
    return origin <= 0 && origin >= -2 && source - 2 * origin - 2 == result;
  };
  return s.groups == 1 && s.kernel_h == 3 && s.kernel_w == 3 && s.stride_h == 1 && s.stride_w == 1 &&
         s.dilation_h == 1 && s.dilation_w == 1 && whole(plan.origin_h, plan.source_h, plan.result_h) &&
         whole(plan.origin_w, plan.source_w, plan.result_w) && plan.result_channels >= least_channels &&
         plan.source_channels >= (std::min(plan.origin_h, plan.origin_w) < -1 ? least_terms : least_channels) &&
         2 * plan.result_plane() >= kWinogradTile * kWinogradTile * plan.tiles() &&
         plan.batch * plan.tiles() >= least_tiles;
}

/// Images in strips of whole rows of tiles, and blocks of one strip or, if a strip is a whole image, of a few.
struct WinogradBlocks {
  int64_t rows, strips;    // rows of tiles in a strip, strips of an image
  int64_t at_once, count;  // strips in a block, blocks

  WinogradBlocks(const WinogradPlan& plan, int64_t most_tiles) {
    constexpr int64_t least_blocks = 8;
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
        last(std::min(first + blocks.rows, plan.tiles_h)), result_begin(first * kWinogradTile),
        result_end(std::min(last * kWinogradTile, plan.result_h)) {}
};

/// An odd number of cache lines with room for `count` elements, so that the 36 points fall into different sets.
template <class T>
int64_t odd_lines(int64_t count) {
  constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(T));
  return ((count + line - 1) / line | 1) * line;
}

/// The squares of size x size pixels that a strip's tiles cover in rows [begin, end) of an image: tile (y, x) begins at
/// pixel (4 y + origin_h, 4 x + origin_w). Tiles over the edge go through a buffer.
template <class T>
struct WinogradWindow {
  static constexpr int64_t step = kWinogradTile;
  int64_t size, origin_h, origin_w, begin, end, columns, width;
  T *pixels, *edge;  // (end - begin, columns, width), (size, size, width)

  /// Calls f(first tile, tiles, first pixel, distances of tiles, rows and columns) for runs of the tiles of a row; for
  /// those over the edge before(y, x) and after(y, x) copy the pixels to and from the buffer.
  template <class F, class Before, class After>
  void each_run(int64_t row, int64_t tiles, F&& f, Before&& before, After&& after) const {
    const int64_t y = row * step + origin_h;
    const bool inside = y >= begin && y + size <= end;
    for (int64_t t = 0; t < tiles;) {
      const int64_t x = t * step + origin_w;
      if (inside && x >= 0 && x + size <= columns) {
        const int64_t run = std::min(tiles - t, (columns - size - x) / step + 1);
        f(t, run, pixels + ((y - begin) * columns + x) * width, step * width, columns * width);
        t += run;
      } else {
        before(y, x);
        f(t, int64_t{1}, edge, 0, size * width);
        after(y, x);
        ++t;
      }
    }
  }

  void load_edge(int64_t y, int64_t x) const {
    T* to = edge;
    for (int64_t i = y; i < y + size; ++i) {
      for (int64_t j = x; j < x + size; ++j, to += width) {
        if (i >= begin && i < end && j >= 0 && j < columns)
          std::copy_n(pixels + ((i - begin) * columns + j) * width, width, to);
        else
          std::fill_n(to, width, T(0));
      }
    }
  }
  void store_edge(int64_t y, int64_t x) const {
    const int64_t count = std::min(size, columns - x);
    for (int64_t i = y; i < std::min(y + size, end); ++i)
      std::copy_n(edge + (i - y) * size * width, count * width, pixels + ((i - begin) * columns + x) * width);
  }

  /// Transforms the tiles of a row: points (36, tiles, channels), with the first tile's at `points`.
  void forth(void (*transform)(const WinogradTiles<T>&), int64_t row, int64_t tiles, T* points, int64_t point_step,
             int64_t points_step) const {
    each_run(
        row, tiles,
        [&](int64_t t, int64_t run, T* first, int64_t tile_step, int64_t row_step) {
          transform({first, tile_step, row_step, width, points + t * points_step, point_step, points_step, run, width});
        },
        [&](int64_t y, int64_t x) { load_edge(y, x); }, [](int64_t, int64_t) {});
  }
  bool back(bool (*transform)(const WinogradTiles<T>&), int64_t row, int64_t tiles, T* points, int64_t point_step,
            int64_t points_step) const {
    bool finite = true;
    each_run(
        row, tiles,
        [&](int64_t t, int64_t run, T* first, int64_t tile_step, int64_t row_step) {
          finite &= transform(
              {first, tile_step, row_step, width, points + t * points_step, point_step, points_step, run, width});
        },
        [](int64_t, int64_t) {}, [&](int64_t y, int64_t x) { store_edge(y, x); });
    return finite;
  }
};

/// Planes (batch, channels, h, w) whose panels [first, last) of channels are transformed.
template <class T>
struct WinogradOperand {
  const T* planes;
  const Panels<T>& panels;
  int64_t first, last, h, w, size, origin_h, origin_w;
  void (*transform)(const WinogradTiles<T>&);

  int64_t width() const { return panels.first(last - 1) + panels.width(last - 1) - panels.first(first); }
  /// Returns the elements of the pixels that `rows` rows of tiles read.
  int64_t pixels(int64_t rows) const { return std::min(rows * kWinogradTile + 2, h) * w * width(); }

  /// Transforms the rows of tiles of a strip: points (36, tiles, width), with the first tile's at `points`.
  void to_points(const WinogradStrip& strip, int64_t tiles_w, T* pixels, T* edge, T* points, int64_t point_step) const {
    const int64_t top = strip.first * kWinogradTile + origin_h, plane = h * w, step = width();
    const int64_t begin = std::clamp<int64_t>(top, 0, h);
    const int64_t end = std::clamp((strip.last - 1) * kWinogradTile + size + origin_h, begin, h);
    const T* image = planes + strip.image * panels.channels * plane + begin * w;
    for (int64_t p = first; p < last; ++p) {
      const int64_t panel = panels.width(p), channel = panels.first(p) - panels.first(first);
      // (pixels, panel)
      gemm_ops<T>().pack(image + panels.first(p) * plane, plane, 1, panels.used(p), (end - begin) * w, panel, pixels);
      const WinogradWindow<T> window{size, origin_h, origin_w, begin, end, w, panel, pixels, edge};
      for (int64_t row = strip.first; row < strip.last; ++row)
        window.forth(transform, row, tiles_w, points + (row - strip.first) * tiles_w * step + channel, point_step,
                     step);
    }
  }
};

/// Transforms the weights of all panels: (36, panels, source channels, panel), as GEMM reads packed panels.
template <class T>
void winograd_weights(const WinogradPlan& plan, const Panels<T>& panels, const T* w, const WeightStrides& strides,
                      bool reversed, int64_t point_step, T* out) {
  constexpr int64_t unit = 16;  // source channels
  const int64_t units = (plan.source_channels + unit - 1) / unit;
  parallel_for(0, panels.count() * units, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t panel = t / units, width = panels.width(panel);
      T* taps = scratch<T>(Slot::conv_pixels, kWinogradKernel * width + kPackSlack);  // (3, 3, panel)
      for (int64_t c = t % units * unit; c < std::min(plan.source_channels, (t % units + 1) * unit); ++c) {
        gemm_ops<T>().pack(w + panels.first(panel) * strides.lane + c * strides.channel, strides.lane, 1,
                           panels.used(panel), kWinogradKernel, width, taps);
        const int64_t step = reversed ? -width : width;
        winograd_ops().weight({reversed ? taps + (kWinogradKernel - 1) * width : taps, 0, 3 * step, step,
                               out + panels.first(panel) * plan.source_channels + c * width, point_step, 0, 1, width});
      }
    }
  });
}

/// The work of one block of tiles.
template <class T>
struct WinogradWork {
  const WinogradPlan& plan;
  const WinogradBlocks& blocks;
  const WinogradOperand<T>& source;
  const Panels<T>& panels;  // of the result
  int64_t weight_step;      // between points
  const T *weights, *bias;
  T* result;
};

/// Writes panels [p0, p1) of the results of one strip; returns whether all are finite.
template <class T>
bool winograd_results(const WinogradWork<T>& g, const WinogradStrip& strip, int64_t p0, int64_t p1, T* products,
                      int64_t point_step, int64_t width, T* pixels, T* edge) {
  const WinogradPlan& plan = g.plan;
  const int64_t begin = strip.result_begin * plan.result_w, end = strip.result_end * plan.result_w;
  bool finite = true;
  for (int64_t p = p0; p < p1; ++p) {
    const int64_t channel = g.panels.first(p), panel = g.panels.width(p);
    const WinogradWindow<T> window{kWinogradTile, 0, 0, strip.result_begin, strip.result_end, plan.result_w, panel,
                                   pixels, edge};
    for (int64_t row = strip.first; row < strip.last; ++row) {
      finite &= window.back(winograd_ops().output, row, plan.tiles_w,
                            products + (row - strip.first) * plan.tiles_w * width + channel - g.panels.first(p0),
                            point_step, width);
    }
    conv_ops<T>().to_planes({pixels, end - begin, g.panels.used(p), panel, g.bias ? g.bias + channel : nullptr,
                             g.result + (strip.image * plan.result_channels + channel) * plan.result_plane() + begin,
                             plan.result_plane()});
  }
  return finite;
}

/// Computes the strips [first, last) of a block; finite[strip] tells whether all results of a strip are.
template <class T>
void winograd_block(const WinogradWork<T>& g, int64_t first, int64_t last, bool* finite) {
  constexpr int64_t panels_at_once = 2;
  const WinogradPlan& plan = g.plan;
  const int64_t strip_tiles = g.blocks.rows * plan.tiles_w, channels = g.source.width(), lanes = g.panels.lanes;
  const int64_t most_width = panels_at_once * 2 * lanes, edge_size = kWinogradPoints * 2 * lanes;
  const int64_t source_step = odd_lines<T>((last - first) * strip_tiles * channels);
  const int64_t result_step = odd_lines<T>((last - first) * strip_tiles * most_width);
  const int64_t pixels_size =
      std::max(g.source.pixels(g.blocks.rows), g.blocks.rows * kWinogradTile * plan.result_w * 2 * lanes);
  T* transformed = scratch<T>(Slot::conv_columns, kWinogradPoints * (source_step + result_step) + edge_size +
                                                      pixels_size);  // (36, tiles, channels)
  T* products = transformed + kWinogradPoints * source_step;          // (36, tiles, panels at once)
  T* edge = products + kWinogradPoints * result_step;
  T* pixels = edge + edge_size;
  int64_t tiles = 0;
  for (int64_t s = first; s < last; ++s) {
    const WinogradStrip strip(plan, g.blocks, s);
    g.source.to_points(strip, plan.tiles_w, pixels, edge, transformed + tiles * channels, source_step);
    tiles += (strip.last - strip.first) * plan.tiles_w;
    finite[s] = true;
  }
  const RowBlocks row_blocks(tiles, gemm_ops<T>().max_height);
  for (int64_t p0 = 0; p0 < g.panels.count(); p0 += panels_at_once) {
    const int64_t p1 = std::min(p0 + panels_at_once, g.panels.count()), channel = g.panels.first(p0);
    const int64_t width = g.panels.first(p1 - 1) + g.panels.width(p1 - 1) - channel;
    for (int64_t point = 0; point < kWinogradPoints; ++point) {
      gemm_ops<T>().block({&row_blocks, 0, row_blocks.count, 0, width, plan.source_channels,
                           transformed + point * source_step, 0, channels,
                           g.weights + point * g.weight_step + channel * plan.source_channels, 0,
                           products + point * result_step, width, T(1), T(0), nullptr});
    }
    T* from = products;
    for (int64_t s = first; s < last; ++s) {
      const WinogradStrip strip(plan, g.blocks, s);
      finite[s] &= winograd_results(g, strip, p0, p1, from, result_step, width, pixels, edge);
      from += (strip.last - strip.first) * plan.tiles_w * width;
    }
  }
}

/// Computes result = source * w (+ bias). Images with a result that is not finite are computed again by direct_run: the
/// transforms spread an infinity or a NaN over a tile, and may overflow where the convolution itself does not.
template <class T>
void winograd_run(const WinogradPlan& plan, const DirectPlan& direct, const T* source, const T* w,
                  const WeightStrides& strides, bool reversed, const T* bias, T* result) {
  constexpr int64_t block_bytes = int64_t{512} << 10;
  const Panels<T> source_panels(plan.source_channels), result_panels(plan.result_channels);
  const int64_t lanes = source_panels.lanes;
  const int64_t tile_bytes = kWinogradPoints * (plan.source_channels + 4 * lanes) * static_cast<int64_t>(sizeof(T));
  const WinogradBlocks blocks(plan, std::max<int64_t>(2 * gemm_ops<T>().max_height, block_bytes / tile_bytes));
  const int64_t columns = (plan.result_channels + lanes - 1) / lanes * lanes;
  const int64_t weight_step = odd_lines<T>(plan.source_channels * columns);
  T* weights = scratch<T>(Slot::conv_weights, kWinogradPoints * weight_step);
  winograd_weights(plan, result_panels, w, strides, reversed, weight_step, weights);
  bool* finite = scratch<bool>(Slot::conv_sums, plan.batch * blocks.strips);
  const WinogradOperand<T> operand{source, source_panels, 0, source_panels.count(), plan.source_h, plan.source_w,
                                   kWinogradInput, plan.origin_h, plan.origin_w, winograd_ops().input};
  const WinogradWork<T> work{plan, blocks, operand, result_panels, weight_step, weights, bias, result};
  parallel_for(0, blocks.count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      winograd_block(work, b * blocks.at_once, std::min((b + 1) * blocks.at_once, plan.batch * blocks.strips), finite);
  });
  const auto spoiled = [&](int64_t image) {
    const bool* of = finite + image * blocks.strips;
    return std::find(of, of + blocks.strips, false) != of + blocks.strips;
  };
  for (int64_t image = 0, end; image < plan.batch; image = end) {
    for (end = image; end < plan.batch && spoiled(end);) ++end;
    if (end == image) {
      ++end;
      continue;
    }
    direct_run(direct, end - image, int64_t{1}, source + image * plan.source_channels * plan.source_plane(), w, strides,
               bias, result + image * plan.result_channels * plan.result_plane());
  }
}

}  // namespace levin::kernels::cpu::detail
