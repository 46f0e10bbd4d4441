#pragma once
// Winograd's convolution: the shipped path for float kernels of 3 x 3 and 5 x 5 without stride and of 4 x 4 with a
// stride of 2, without dilation and groups, where there are channels and tiles enough (serves_winograd). Idea:
// F(4 x 4, 3 x 3): a tile of 4 x 4 results needs 6 x 6 pixels of the source. In a basis in which convolution is
// multiplication at 36 points, it takes 36 products instead of 144; summed over the channels they are 36 matrix
// products of tiles by weights. F(2 x 2, 5 x 5) has the same points and takes 36 products instead of 100. A stride of
// 2 makes four phases, which are convolutions by 2 x 2 kernels: F(4 x 4, 2 x 2) takes 4 x 25 products instead of 256.
// Changes compared with direct.h: a quarter to 0.4 of the multiply-adds, for transforms that are additions. Bound: the
// multipliers for half of the time; the rest moves planes into and out of the lanes' layout at the memory's rate.
// Gained over direct.h on two cores with AVX-512: 2.3 times from 32 to 64 channels of 26 x 26 (1,170 GFLOP/s in the
// direct count, where the multipliers reach 545), 2.6 times for 64 channels of 56 x 56, 1.6 times for 16 channels, 1.1
// to 1.6 times with a stride of 2, 1.0 to 2.0 times for 5 x 5; the gradient of the weight 1.6 to 2.4 times.
// docs/convolution.md has more figures, and what was tried.
//
// The method is that of Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016. Its points 0, 1, -1,
// 2, -2 make the error four to five times that of a plain sum. With sqrt(1/2) and sqrt(2) instead of 1 and 2 it is two
// to three times (on the choice: Barabasz et al., "Error analysis and improving the accuracy of Winograd convolution
// for deep neural networks", 2020), which fits the error model, so that the smaller F(2 x 2, 3 x 3) is not needed.
//
// The order of the work is that of oneDNN: a task takes a block of tiles all the way from the planes to the results, so
// that transformed tiles stay in L2; only the weights are transformed for all tasks. The transforms' lanes are
// channels, as in ncnn, which suit images of any width. Both libraries keep such a layout between layers; here a task's
// planes are transposed on the way in and out.

#include "kernels/cpu/cache.h"
#include "kernels/cpu/conv/direct.h"
#include "kernels/cpu/conv/winograd_plan.h"

#include <algorithm>

namespace levin::kernels::cpu::detail {

/// An odd number of cache lines with room for `count` elements, so that the points fall into different sets.
template <class T>
int64_t odd_lines(int64_t count) {
  constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(T));
  return ((count + line - 1) / line | 1) * line;
}

inline int64_t whole_vectors(int64_t channels, int64_t lanes) {
  return (channels + lanes - 1) / lanes * lanes;
}

/// The squares of size x size pixels, `stride` apart, that a strip's tiles cover in rows [begin, end) of an image: tile
/// (y, x) begins at pixel (step y + first_h, step x + first_w).
template <class T>
struct WinogradWindow {
  int64_t size, stride, step, first_h, first_w, begin, end, columns, width;
  T *pixels, *outside;  // (end - begin, columns, width), and (width) that stands for each pixel over an edge

  /// Calls f(first tile, its pixels) for runs of the tiles of a row. Each tile over an edge is a run of its own.
  template <class F>
  void each_run(int64_t row, int64_t tiles, F&& f) const {
    const int64_t reach = (size - 1) * stride, y = row * step + first_h;
    const bool rows_inside = y >= begin && y + reach < end;
    WinogradOffsets whole, cut;
    if (rows_inside) whole = winograd_offsets(size, stride * columns * width, stride * width);
    for (int64_t t = 0; t < tiles;) {
      const int64_t x = t * step + first_w;
      WinogradTiles<T> run{pixels, 0, cut.data(), nullptr, 0, 0, 1, width};
      if (rows_inside && x >= 0 && x + reach < columns) {
        run.pixels += ((y - begin) * columns + x) * width;
        run.pixels_step = step * width, run.offsets = whole.data();
        run.tiles = std::min(tiles - t, (columns - 1 - reach - x) / step + 1);
      } else {
        cut_offsets(y, x, cut);
      }
      f(t, run);
      t += run.tiles;
    }
  }

  /// Transforms the tiles of a row: points (points, tiles, channels), with the first tile's at `points`. Pixels over an
  /// edge are zero.
  void forth(void (*transform)(const WinogradTiles<T>&), int64_t row, int64_t tiles, T* points, int64_t point_step,
             int64_t points_step) const {
    std::fill_n(outside, width, T(0));
    each_run(row, tiles, [&](int64_t t, WinogradTiles<T>& run) {
      run.points = points + t * points_step, run.point_step = point_step, run.points_step = points_step;
      transform(run);
    });
  }
  /// Transforms the points of a row of tiles back to pixels; returns whether all are finite.
  bool back(bool (*transform)(const WinogradTiles<T>&), int64_t row, int64_t tiles, T* points, int64_t point_step,
            int64_t points_step) const {
    bool finite = true;
    each_run(row, tiles, [&](int64_t t, WinogradTiles<T>& run) {
      run.points = points + t * points_step, run.point_step = point_step, run.points_step = points_step;
      finite &= transform(run);
    });
    return finite;
  }

 private:
  /// Computes the distances from `pixels` to the pixels of the tile at (y, x).
  void cut_offsets(int64_t y, int64_t x, WinogradOffsets& offsets) const {
    const int64_t away = outside - pixels;
    int64_t* offset = offsets.data();
    std::array<int64_t, 6> column;  // -1 over an edge
    for (int64_t j = 0; j < size; ++j) {
      const int64_t at = x + j * stride;
      column[static_cast<std::size_t>(j)] = at >= 0 && at < columns ? at * width : -1;
    }
    for (int64_t i = y; i < y + size * stride; i += stride, offset += size) {
      if (i < begin || i >= end) {
        std::fill_n(offset, size, away);
        continue;
      }
      const int64_t line = (i - begin) * columns * width;
      for (int64_t j = 0; j < size; ++j) {
        const int64_t at = column[static_cast<std::size_t>(j)];
        offset[j] = at < 0 ? away : line + at;
      }
    }
  }
};

/// Planes (batch, channels, h, w) whose panels [first, last) of channels are transformed, each in `phases` ways that
/// begin at different pixels: the width of a tile's points is phases times channels.
template <class T>
struct WinogradOperand {
  const T* planes;
  const Panels<T>& panels;
  int64_t first, last, h, w, size, stride, step;
  void (*transform)(const WinogradTiles<T>&);
  int64_t phases;
  int64_t first_h[4], first_w[4];

  WinogradOperand(const T* planes_, const Panels<T>& panels_, int64_t first_, int64_t last_, int64_t h_, int64_t w_,
                  int64_t size_, int64_t stride_, int64_t step_, void (*transform_)(const WinogradTiles<T>&))
      : planes(planes_), panels(panels_), first(first_), last(last_), h(h_), w(w_), size(size_), stride(stride_),
        step(step_), transform(transform_), phases(0) {}
  void add_phase(int64_t at_h, int64_t at_w) { first_h[phases] = at_h, first_w[phases++] = at_w; }

  int64_t channels() const { return panels.first(last - 1) + panels.width(last - 1) - panels.first(first); }
  int64_t width() const { return phases * channels(); }
  /// Returns the elements of the pixels that `rows` rows of tiles read.
  int64_t pixels(int64_t rows) const {
    return std::min((rows - 1) * step + size * stride, h) * w * 2 * panels.lanes;
  }

  /// Transforms the rows of tiles of a strip: points (points, tiles, width), tiles `points_step` apart, with the first
  /// tile's at `points`.
  void to_points(const WinogradStrip& strip, int64_t tiles_w, T* pixels, T* outside, T* points, int64_t point_step,
                 int64_t points_step) const {
    const int64_t plane = h * w;
    const int64_t begin = std::clamp<int64_t>(strip.first * step + first_h[0], 0, h);
    const int64_t end =
        std::clamp((strip.last - 1) * step + (size - 1) * stride + first_h[phases - 1] + 1, begin, h);
    const T* image = planes + strip.image * panels.channels * plane + begin * w;
    for (int64_t p = first; p < last; ++p) {
      const int64_t panel = panels.width(p), channel = panels.first(p) - panels.first(first);
      // (pixels, panel)
      gemm_ops<T>().pack(image + panels.first(p) * plane, plane, 1, panels.used(p), (end - begin) * w, panel, pixels);
      for (int64_t phase = 0; phase < phases; ++phase) {
        const WinogradWindow<T> window{size, stride, step,  first_h[phase], first_w[phase], begin,
                                       end,  w,      panel, pixels,         outside};
        T* to = points + phase * channels() + channel;
        for (int64_t row = strip.first; row < strip.last; ++row, to += tiles_w * points_step)
          window.forth(transform, row, tiles_w, to, point_step, points_step);
      }
    }
  }
};

/// The phases of the source, or those of one phase of the result.
template <class T>
WinogradOperand<T> winograd_source(const WinogradPlan& plan, const Panels<T>& panels, const T* source,
                                   int64_t result_phase) {
  const int64_t stride = plan.forward ? plan.stride : 1;
  WinogradOperand<T> operand(source, panels, 0, panels.count(), plan.source_h, plan.source_w, plan.input(), stride,
                             plan.tile() * stride, winograd_ops(plan.taps).input);
  for (int64_t i = 0; i < plan.source_phases(); ++i) {
    const int64_t phase = plan.forward ? i : result_phase;
    operand.add_phase(WinogradPhase(plan, phase / plan.stride, plan.pad_h).first,
                      WinogradPhase(plan, phase % plan.stride, plan.pad_w).first);
  }
  return operand;
}

/// The transformed weights of all panels: for each phase of the result (points, panels, terms, panel), as GEMM reads
/// packed panels. Terms are the source's channels, phase by phase.
template <class T>
struct WinogradWeights {
  int64_t terms, point_step, phase_step;

  WinogradWeights(const WinogradPlan& plan, const Panels<T>& panels)
      : terms(plan.source_phases() * plan.source_channels),
        point_step(odd_lines<T>(terms * whole_vectors(plan.result_channels, panels.lanes))),
        phase_step(plan.points() * point_step) {}

  /// Transforms the taps of source channel c for a panel.
  void transform(const WinogradPlan& plan, const Panels<T>& panels, int64_t panel, int64_t c, const T* w,
                 const WeightStrides& strides, T* taps, T* out) const {
    const int64_t width = panels.width(panel), size = plan.kernel();
    const int64_t step = plan.forward ? plan.stride * width : -plan.stride * width;
    const WinogradOffsets offsets = winograd_offsets(plan.taps, size * step, step);
    // (size, size, panel)
    gemm_ops<T>().pack(w + panels.first(panel) * strides.lane + c * strides.channel, strides.lane, 1,
                       panels.used(panel), size * size, width, taps);
    for (int64_t phase = 0; phase < plan.phases(); ++phase) {
      const WinogradPhase row(plan, phase / plan.stride, plan.pad_h), column(plan, phase % plan.stride, plan.pad_w);
      T* first = taps + (row.kernel * size + column.kernel) * width;
      T* to = out + panels.first(panel) * terms + c * width +
              phase * (plan.forward ? plan.source_channels * width : phase_step);
      winograd_ops(plan.taps).weight({first, 0, offsets.data(), to, point_step, 0, 1, width});
    }
  }

  void transform_all(const WinogradPlan& plan, const Panels<T>& panels, const T* w, const WeightStrides& strides,
                     T* out) const {
    constexpr int64_t unit = 16;  // source channels
    const int64_t units = (plan.source_channels + unit - 1) / unit;
    parallel_for(0, panels.count() * units, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t panel = t / units, last = std::min(plan.source_channels, (t % units + 1) * unit);
        T* taps = scratch<T>(Slot::conv_pixels, plan.kernel() * plan.kernel() * panels.width(panel) + kPackSlack);
        for (int64_t c = t % units * unit; c < last; ++c) transform(plan, panels, panel, c, w, strides, taps, out);
      }
    });
  }
};

/// The work of one block of tiles.
template <class T>
struct WinogradWork {
  const WinogradPlan& plan;
  const WinogradBlocks& blocks;
  const Panels<T>&source_panels, &panels;
  const WinogradWeights<T>& weights;
  const T *source, *w, *bias;  // w: transformed
  T* result;
  int64_t panels_at_once;
};

/// Transforms panel p of the results of one phase of one strip to pixels; returns whether all are finite.
template <class T>
bool winograd_results(const WinogradWork<T>& g, const WinogradStrip& strip, int64_t phase, int64_t panel, T* products,
                      int64_t point_step, int64_t width, T* pixels, T* outside) {
  const WinogradPlan& plan = g.plan;
  const int64_t stride = plan.result_stride();
  const WinogradWindow<T> window{plan.tile(), stride, plan.tile() * stride, phase / stride, phase % stride,
                                 strip.result_begin, strip.result_end, plan.result_w, panel, pixels, outside};
  bool finite = true;
  for (int64_t row = strip.first; row < strip.last; ++row, products += plan.tiles_w * width)
    finite &= window.back(winograd_ops(plan.taps).output, row, plan.tiles_w, products, point_step, width);
  return finite;
}

/// Computes the strips [first, last) of a block; finite[strip] tells whether all results of a strip are.
template <class T>
void winograd_block(const WinogradWork<T>& g, int64_t first, int64_t last, bool* finite) {
  const int64_t panels_at_once = g.panels_at_once;
  const WinogradPlan& plan = g.plan;
  const int64_t lanes = g.panels.lanes, count = last - first, strip_tiles = g.blocks.rows * plan.tiles_w;
  const int64_t most_width = panels_at_once * 2 * lanes, outside_size = 2 * lanes;
  const int64_t source_width = plan.source_phases() * whole_vectors(plan.source_channels, lanes);
  const int64_t source_step = odd_lines<T>(count * strip_tiles * source_width);
  const int64_t result_step = odd_lines<T>(count * strip_tiles * most_width);
  const int64_t source_pixels = winograd_source(plan, g.source_panels, g.source, 0).pixels(g.blocks.rows);
  // Phases of a result share its pixels, which leave for the planes after the last phase.
  const int64_t panel_pixels = g.blocks.rows * plan.tile() * plan.result_stride() * plan.result_w * 2 * lanes;
  const int64_t kept = plan.result_phases() > 1 ? g.panels.count() : 0;
  T* transformed = scratch<T>(Slot::conv_columns, plan.points() * (source_step + result_step) + outside_size +
                                                      source_pixels +
                                                      std::max<int64_t>(1, count * kept) * panel_pixels);
  T* products = transformed + plan.points() * source_step;  // (points, tiles, panels at once)
  T* outside = products + plan.points() * result_step;
  T *pixels = outside + outside_size, *results = pixels + source_pixels;
  std::fill(finite + first, finite + last, true);
  for (int64_t phase = 0; phase < plan.result_phases(); ++phase) {
    const WinogradOperand<T> source = winograd_source(plan, g.source_panels, g.source, phase);
    int64_t tiles = 0;
    for (int64_t s = first; s < last; ++s) {
      const WinogradStrip strip(plan, g.blocks, s);
      source.to_points(strip, plan.tiles_w, pixels, outside, transformed + tiles * source_width, source_step,
                       source_width);
      tiles += (strip.last - strip.first) * plan.tiles_w;
    }
    const RowBlocks row_blocks(tiles, gemm_ops<T>().max_height);
    for (int64_t p0 = 0; p0 < g.panels.count(); p0 += panels_at_once) {
      const int64_t p1 = std::min(p0 + panels_at_once, g.panels.count()), channel = g.panels.first(p0);
      const int64_t width = g.panels.first(p1 - 1) + g.panels.width(p1 - 1) - channel;
      for (int64_t point = 0; point < plan.points(); ++point) {
        const T* w = g.w + phase * g.weights.phase_step + point * g.weights.point_step + channel * g.weights.terms;
        gemm_ops<T>().block({&row_blocks, 0, row_blocks.count, 0, width, g.weights.terms,
                             transformed + point * source_step, 0, source_width, w, 0, products + point * result_step,
                             width, T(1), T(0), nullptr});
      }
      T* from = products;
      for (int64_t s = first; s < last; ++s) {
        const WinogradStrip strip(plan, g.blocks, s);
        for (int64_t p = p0; p < p1; ++p) {
          const int64_t begin = strip.result_begin * plan.result_w, end = strip.result_end * plan.result_w;
          T* to = results + (kept ? (s - first) * kept + p : 0) * panel_pixels;
          finite[s] &= winograd_results(g, strip, phase, g.panels.width(p), from + g.panels.first(p) - channel,
                                        result_step, width, to, outside);
          if (phase + 1 < plan.result_phases()) continue;
          conv_ops<T>().to_planes(
              {to, end - begin, g.panels.used(p), g.panels.width(p), g.bias ? g.bias + g.panels.first(p) : nullptr,
               g.result + (strip.image * plan.result_channels + g.panels.first(p)) * plan.result_plane() + begin,
               plan.result_plane()});
        }
        from += (strip.last - strip.first) * plan.tiles_w * width;
      }
    }
  }
}

/// Computes result = source * w (+ bias). Images with a result that is not finite are computed again by direct_run: the
/// transforms spread an infinity or a NaN over a tile, and may overflow where the convolution itself does not.
template <class T>
void winograd_run(const WinogradPlan& plan, const DirectPlan& direct, const T* source, const T* w,
                  const WeightStrides& strides, const T* bias, T* result) {
  const Panels<T> source_panels(plan.source_channels), result_panels(plan.result_channels);
  const WinogradWeights<T> weights(plan, result_panels);
  T* transformed = scratch<T>(Slot::conv_weights, plan.result_phases() * weights.phase_step);
  weights.transform_all(plan, result_panels, w, strides, transformed);
  // A block leaves room for the weights in L2. Where they do not fit, a block of many tiles reads them from memory
  // once, point by point, so that each point's tiles, weights and products are in L2 meanwhile. A tile's results do not
  // depend on its block.
  const int64_t element = static_cast<int64_t>(sizeof(T));
  const int64_t weight_bytes = plan.result_phases() * weights.phase_step * element;
  const bool far = weight_bytes > second_level_cache() / 2;
  const int64_t tile_bytes = plan.points() * (weights.terms + 4 * source_panels.lanes) * element;
  const int64_t near_tiles = std::max<int64_t>(2 * gemm_ops<T>().max_height, (int64_t{512} << 10) / tile_bytes);
  const int64_t threads = num_threads(), tiles = plan.batch * plan.tiles();
  const WinogradBlocks blocks(plan, far ? kWinogradFarTiles : near_tiles,
                              far ? std::clamp<int64_t>(2 * tiles / kWinogradFarTiles, threads, 2 * threads)
                                  : std::clamp<int64_t>(2 * threads, 4, 32));
  bool* finite = scratch<bool>(Slot::conv_sums, plan.batch * blocks.strips);
  const WinogradWork<T> work{plan,        blocks, source_panels, result_panels, weights, source,
                             transformed, bias,   result,        far ? result_panels.count() : 2};
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
