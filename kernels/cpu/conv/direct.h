#pragma once
// Direct convolution: the shipped path for eight or more channels in the lane dimension that winograd.h does not
// serve.
// Idea: output channels are lanes, neighbouring pixels of a row are the tile's height. A tap's inputs for those pixels
// are then neighbours too, so a tile reads the zero-padded image in place: no column matrix is ever written. Strides
// are removed by splitting the padded image into phases (every s-th row and column) while it is copied; dilation is
// only another offset. The gradient of the input is the same loop with the channels' roles exchanged, one phase of its
// pixels at a time. Large images are computed in strips of rows, whose padded sources fit into a second-level cache and
// which are tasks of their own: one image of 224 x 224 takes 0.56 to 0.84 of the time that it takes as a whole, and one
// of 512 x 512 with 16 channels 0.27 to 0.4 (two cores with AVX-512, stride 2). Changes compared with columns.h: a
// ninth to a twenty-fifth of the memory traffic, and no waste on narrow images. Bound: the multipliers; the copies into
// and out of the lanes' layout are work of order pixels, compared with pixels times taps.

#include "kernels/cpu/conv/plan.h"
#include "kernels/cpu/gemm/ops.h"
#include "kernels/cpu/scratch.h"

#include <levin/core/parallel.h>

#include <algorithm>

namespace levin::kernels::cpu::detail {

/// Strides of a weight: w[lane * lane_stride + source channel * channel_stride + kernel position].
struct WeightStrides {
  int64_t lane, channel, group;
};

/// Packs the weights of one panel in the table's order, (taps, panel).
template <class T>
void pack_weights(const DirectPlan& plan, const TapTable& table, const Panels<T>& panels, int64_t panel, const T* w,
                  const WeightStrides& strides, T* dst) {
  const int64_t width = panels.width(panel);
  T* natural = scratch<T>(Slot::conv_pixels, plan.taps() * width);
  for (int64_t c = 0; c < plan.source_channels; ++c) {
    gemm_ops<T>().pack(w + panels.first(panel) * strides.lane + c * strides.channel, strides.lane, 1,
                       panels.used(panel), plan.kernel(), width, natural + c * plan.kernel() * width);
  }
  for (const int64_t weight : table.weights) dst = std::copy_n(natural + weight * width, width, dst);
}

/// Returns the padded sources of one group of `images` images: copies in scratch memory, or the planes themselves.
template <class T>
const T* padded_source(const DirectPlan& plan, const T* planes, int64_t images = 1, int64_t image_step = 0) {
  if (plan.in_place()) return planes;
  T* padded = scratch<T>(Slot::conv_source, images * plan.source_channels * plan.padded_plane());
  for (int64_t i = 0; i < images; ++i) {
    for (int64_t c = 0; c < plan.source_channels; ++c) {
      pad_plane(planes + i * image_step + c * plan.source_plane(), plan.rows, plan.columns,
                padded + (i * plan.source_channels + c) * plan.padded_plane());
    }
  }
  return padded;
}

/// Computes all pixels of one phase for one panel: (result_h, result_w, panel), skipping kernel rows that lie on
/// padding.
template <class T>
void direct_phase(const DirectPlan& plan, const TapTable& table, const PhaseTaps& phase, const T* source,
                  const T* weights, int64_t vectors, T* pixels) {
  const ConvOps<T>& ops = conv_ops<T>();
  const int64_t width = vectors * ops.lanes;
  const AxisPhase &rows = plan.rows.results[phase.row], &columns = plan.columns.results[phase.column];
  const int64_t most_rows = 2 * columns.count <= ops.max_height ? 2 : 1;
  for (int64_t r = 0; r < rows.count;) {
    const int64_t position = rows.source + r, count = std::min(most_rows, rows.count - r);
    const auto outside = [&](const AxisTap& tap) {
      return !plan.rows.inside(position, tap) && !plan.rows.inside(position + count - 1, tap);
    };
    auto first = rows.taps.begin(), last = rows.taps.end();
    while (first != last && outside(*first)) ++first;
    while (first != last && outside(*(last - 1))) --last;
    const int64_t tap = phase.first + (first - rows.taps.begin()) * phase.per_row;
    const int64_t pixel = (rows.first + r * rows.step) * plan.result_w + columns.first;
    ops.row({source + position * plan.columns.extent + columns.source, table.offsets.data() + tap,
             weights + tap * width, (last - first) * phase.per_row, columns.count, count, plan.columns.extent,
             pixels + pixel * width, columns.step * width, rows.step * plan.result_w * width, vectors});
    r += count;
  }
}

/// Shared by the tasks of one convolution.
template <class T>
struct DirectRun {
  const DirectPlan& plan;
  const TapTable& table;
  const Panels<T>& panels;
  int64_t groups, panel_size;
  const T *source, *weights, *bias;  // weights (groups, panels, taps, panel), with panels `panel_size` apart
  T* result;
};

/// Computes panels [first, last) of one strip of an image, for all groups.
template <class T>
void direct_strip(const DirectRun<T>& run, const DirectStrip& strip, int64_t image, int64_t first, int64_t last) {
  const DirectPlan& plan = strip.plan;
  for (int64_t g = 0; g < run.groups; ++g) {
    const int64_t item = image * run.groups + g;
    const T* padded = padded_source(plan, run.source + item * plan.source_channels * plan.source_plane());
    for (int64_t p = first; p < last; ++p) {
      T* pixels = scratch<T>(Slot::conv_pixels, plan.result_plane() * run.panels.width(p));
      const T* const weights = run.weights + (g * run.panels.count() + p) * run.panel_size;
      for (const PhaseTaps& phase : run.table.phases)
        direct_phase(plan, run.table, phase, padded, weights, run.panels.vectors(p), pixels);
      const int64_t channel = g * plan.result_channels + run.panels.first(p), plane = run.plan.result_plane();
      conv_ops<T>().to_planes(
          {pixels, plan.result_plane(), run.panels.used(p), run.panels.width(p),
           run.bias ? run.bias + channel : nullptr,
           run.result + (image * run.groups * plan.result_channels + channel) * plane + strip.first_row * plan.result_w,
           plane});
    }
  }
}

/// Computes result = source * w (+ bias) for all images. Tasks are strips of images and, if there are few, also panels.
template <class T>
void direct_run(const DirectPlan& plan, int64_t batch, int64_t groups, const T* source, const T* w,
                const WeightStrides& strides, const T* bias, T* result) {
  const DirectStrips strips(plan, batch, sizeof(T));
  const TapTable table(strips[0].plan, TapTable::Order::by_row);
  const Panels<T> panels(plan.result_channels);
  const int64_t panel_size = plan.taps() * 2 * conv_ops<T>().lanes;
  T* weights = scratch<T>(Slot::conv_weights, groups * panels.count() * panel_size);
  parallel_for(0, groups * panels.count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      pack_weights(plan, table, panels, t % panels.count(), w + t / panels.count() * strides.group, strides,
                   weights + t * panel_size);
    }
  });
  const DirectRun<T> run{plan, table, panels, groups, panel_size, source, weights, bias, result};
  const int64_t units = batch * strips.count(), splits = units < 8 ? panels.count() : 1;
  parallel_for(0, units * splits, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t unit = t / splits, split = t % splits;
      const DirectStrip& strip = strips[unit % strips.count()];
      direct_strip(run, strip, unit / strips.count(), panels.count() * split / splits,
                   panels.count() * (split + 1) / splits);
    }
  });
}

/// Shared by the tasks of the weight gradient. Sums are (chunks, groups, panels, taps, panel), with panels `panel_size`
/// apart.
template <class T>
struct WeightGradient {
  const Conv2dShape& s;
  const DirectStrips& strips;
  const TapTable& table;
  const Panels<T>& panels;
  const T *x, *dy;
  int64_t panel_size;
};

/// Adds the weight gradient of a strip of `images` images for one group and panel to sum (taps, panel), or overwrites
/// it.
template <class T>
void direct_weight_panel(const WeightGradient<T>& g, const DirectStrip& strip, const T* padded, int64_t image_step,
                         int64_t image, int64_t images, int64_t group, int64_t panel, bool add, T* sum) {
  const ConvOps<T>& ops = conv_ops<T>();
  const Conv2dShape& s = g.s;
  const int64_t width = g.panels.width(panel), channel = group * s.group_out() + g.panels.first(panel);
  const int64_t pixels = strip.plan.result_plane();
  T* gradient = scratch<T>(Slot::conv_pixels, images * pixels * width);  // (images, pixels, panel)
  for (int64_t i = 0; i < images; ++i) {
    gemm_ops<T>().pack(
        g.dy + ((image + i) * s.out_channels + channel) * s.out_plane() + strip.first_row * strip.plan.result_w,
        s.out_plane(), 1, g.panels.used(panel), pixels, width, gradient + i * pixels * width);
  }
  const RowBlocks tiles(strip.plan.taps(), ops.max_height);
  const T* sources[kMostTileHeight];
  for (int64_t tile = 0; tile < tiles.count; ++tile) {
    const int64_t tap = tiles.start(tile), height = tiles.size(tile);
    for (int64_t i = 0; i < height; ++i) sources[i] = padded + g.table.offsets[static_cast<std::size_t>(tap + i)];
    ops.weight_tile({sources, height, images, strip.plan.result_h, s.out_w, image_step, strip.plan.columns.extent,
                     gradient, sum + tap * width, add, g.panels.vectors(panel)});
  }
}

/// Computes the weight gradient of strips [first, last) of all images, for one group and panels [panel_begin,
/// panel_end); `sums` is the first panel's.
template <class T>
void direct_weight_chunk(const WeightGradient<T>& g, int64_t first, int64_t last, int64_t group, int64_t panel_begin,
                         int64_t panel_end, T* sums) {
  const Conv2dShape& s = g.s;
  // Small images are processed several at a time, so that a tile's sums stay in registers for some hundred pixels.
  const int64_t count = g.strips.count();
  const int64_t at_once = count > 1 ? 1 : std::clamp<int64_t>(256 / s.out_plane(), 1, last - first);
  const int64_t item = s.in_channels * s.in_plane();
  for (int64_t unit = first; unit < last; unit += at_once) {
    const int64_t image = unit / count, images = std::min(at_once, last - unit);
    const DirectStrip& strip = g.strips[unit % count];
    const T* padded = padded_source(strip.plan, g.x + image * item + group * s.group_in() * s.in_plane(), images, item);
    const int64_t image_step = strip.plan.in_place() ? item : strip.plan.source_channels * strip.plan.padded_plane();
    if (strip.plan.in_place()) padded += strip.plan.rows.results.front().source * strip.plan.columns.extent;
    for (int64_t p = panel_begin; p < panel_end; ++p) {
      direct_weight_panel(g, strip, padded, image_step, image, images, group, p, unit > first,
                          sums + (p - panel_begin) * g.panel_size);
    }
  }
}

/// Computes dw of all images: chunks of strips are summed separately, so that many threads can work, then added in
/// order.
template <class T>
void direct_backward_weight(const Conv2dShape& s, const T* x, const T* dy, T* dw) {
  constexpr int64_t most_chunks = 16, most_bytes = int64_t{8} << 20, unit = 32;
  const ConvOps<T>& ops = conv_ops<T>();
  const DirectPlan plan = forward_plan(s);
  const DirectStrips strips(plan, s.batch, sizeof(T));
  const TapTable table(strips[0].plan, TapTable::Order::natural);
  const Panels<T> panels(s.group_out());
  const int64_t units = s.batch * strips.count();
  const int64_t taps = plan.taps(), panel_size = taps * 2 * ops.lanes, parts = s.groups * panels.count();
  const int64_t chunks = std::clamp<int64_t>(most_bytes / (parts * panel_size * static_cast<int64_t>(sizeof(T))), 1,
                                             std::min(most_chunks, units));
  const int64_t splits = std::min(panels.count(), (most_chunks - 1) / (chunks * s.groups) + 1);
  const WeightGradient<T> gradient{s, strips, table, panels, x, dy, panel_size};
  T* sums = scratch<T>(Slot::conv_sums, chunks * parts * panel_size);
  parallel_for(0, chunks * s.groups * splits, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t item = t / splits, split = t % splits, chunk = item / s.groups;
      const int64_t p0 = panels.count() * split / splits, p1 = panels.count() * (split + 1) / splits;
      direct_weight_chunk(gradient, units * chunk / chunks, units * (chunk + 1) / chunks, item % s.groups, p0, p1,
                          sums + (item * panels.count() + p0) * panel_size);
    }
  });
  const int64_t pieces = (taps + unit - 1) / unit;
  parallel_for(0, parts * pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t part = t / pieces, panel = part % panels.count(), width = panels.width(panel);
      const int64_t first = t % pieces * unit, count = std::min(unit, taps - first);
      T* sum = sums + part * panel_size + first * width;
      for (int64_t chunk = 1; chunk < chunks; ++chunk) ops.add(sum, sum + chunk * parts * panel_size, count * width);
      const int64_t channel = part / panels.count() * s.group_out() + panels.first(panel);
      ops.to_planes({sum, count, panels.used(panel), width, nullptr, dw + channel * taps + first, taps});
    }
  });
}

}  // namespace levin::kernels::cpu::detail
