#pragma once
// The gradient of the weight by Winograd's convolution: the transpose of the forward pass. Input and gradient of the
// output are transformed tile by tile, their products summed over the tiles at each point, and the sums transformed
// once.

#include "kernels/cpu/conv/winograd.h"

namespace levin::kernels::cpu::detail {

/// Sums of one chunk of images for a few panels: (points, terms, output channels), rows `step` apart. Terms are the
/// input's channels, phase by phase.
template <class T>
struct WinogradSums {
  T* sums;
  int64_t point_step, step;
};

/// Overwrites the sums with those of the strips [begin, end).
template <class T>
void winograd_weight_chunk(const WinogradPlan& plan, const WinogradBlocks& blocks, const WinogradOperand<T>& x,
                           const WinogradOperand<T>& dy, int64_t begin, int64_t end, const WinogradSums<T>& out) {
  const int64_t most_tiles = blocks.at_once * blocks.rows * plan.tiles_w;
  // Tiles are an odd number of cache lines apart, since a product reads a few columns of all of them.
  const int64_t x_width = odd_lines<T>(x.width()), dy_width = odd_lines<T>(dy.width()), points = plan.points();
  const int64_t x_step = odd_lines<T>(most_tiles * x_width), dy_step = odd_lines<T>(most_tiles * dy_width);
  const int64_t outside_size = 2 * x.panels.lanes;
  const int64_t pixels_size = std::max(x.pixels(blocks.rows), dy.pixels(blocks.rows));
  T* x_points = scratch<T>(Slot::conv_columns,
                           points * (x_step + dy_step) + outside_size + pixels_size);  // (points, tiles, x_width)
  T* dy_points = x_points + points * x_step;                                        // (points, tiles, dy_width)
  T* outside = dy_points + points * dy_step;
  T* pixels = outside + outside_size;
  const RowBlocks row_blocks(plan.phases() * plan.source_channels, gemm_ops<T>().max_height);
  for (int64_t first = begin; first < end; first += blocks.at_once) {
    int64_t tiles = 0;
    for (int64_t s = first; s < std::min(first + blocks.at_once, end); ++s) {
      const WinogradStrip strip(plan, blocks, s);
      x.to_points(strip, plan.tiles_w, pixels, outside, x_points + tiles * x_width, x_step, x_width);
      dy.to_points(strip, plan.tiles_w, pixels, outside, dy_points + tiles * dy_width, dy_step, dy_width);
      tiles += (strip.last - strip.first) * plan.tiles_w;
    }
    for (int64_t point = 0; point < points; ++point) {
      gemm_ops<T>().block({&row_blocks, 0, row_blocks.count, 0, dy.width(), tiles, x_points + point * x_step, x_width,
                           0, dy_points + point * dy_step, dy_width, out.sums + point * out.point_step, out.step, T(1),
                           T(first > begin ? 1 : 0), nullptr});
    }
  }
}

/// Transforms the sums to the gradient of the weight; returns whether it is finite.
template <class T>
bool winograd_weight_result(const WinogradPlan& plan, const Panels<T>& panels, const WinogradSums<T>& in, T* dw) {
  constexpr int64_t unit = 16;  // input channels
  const int64_t units = (plan.source_channels + unit - 1) / unit, tasks = panels.count() * units;
  const int64_t size = plan.kernel(), kernel = size * size, taps = plan.source_channels * kernel;
  bool* finite = scratch<bool>(Slot::conv_sums, tasks);
  parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t panel = t / units, first = t % units * unit, channel = panels.first(panel);
      const int64_t width = panels.width(panel), count = std::min(unit, plan.source_channels - first);
      T* gradient = scratch<T>(Slot::conv_pixels, unit * kernel * width);  // (input channels, size, size, panel)
      const WinogradOffsets offsets = winograd_offsets(plan.taps, plan.stride * size * width, plan.stride * width);
      finite[t] = true;
      for (int64_t phase = 0; phase < plan.phases(); ++phase) {
        T* tap = gradient + (phase / plan.stride * size + phase % plan.stride) * width;
        T* sums = in.sums + (phase * plan.source_channels + first) * in.step + channel;
        finite[t] &= winograd_ops(plan.taps).weight_gradient(
            {tap, kernel * width, offsets.data(), sums, in.point_step, in.step, count, width});
      }
      conv_ops<T>().to_planes({gradient, count * kernel, panels.used(panel), width, nullptr,
                               dw + channel * taps + first * kernel, taps});
    }
  });
  return std::find(finite, finite + tasks, false) == finite + tasks;
}

/// Computes dw of all images; one that is not finite is computed again by direct_backward_weight, as in winograd_run.
/// Chunks of images are summed separately, so that many threads can work, then added in order.
template <class T>
void winograd_backward_weight(const Conv2dShape& s, const T* x, const T* dy, T* dw) {
  constexpr int64_t most_chunks = 16, least_blocks = 8, most_bytes = int64_t{8} << 20, block_bytes = int64_t{640} << 10;
  constexpr int64_t far_bytes = int64_t{1} << 20;  // sums that do not fit into a second-level cache beside the tiles
  // Fewer are not worth sums or, unless threads would be idle, a transform of x of their own.
  constexpr int64_t chunk_tiles = 48, split_columns = 128;
  const WinogradPlan plan = winograd_forward(s);
  const Panels<T> x_panels(s.in_channels), dy_panels(s.out_channels);
  const int64_t lanes = x_panels.lanes, bytes = static_cast<int64_t>(sizeof(T));
  const int64_t columns = whole_vectors(s.out_channels, lanes), terms = plan.phases() * s.in_channels;
  const int64_t point_step = odd_lines<T>(terms * columns), size = plan.points() * point_step;
  const int64_t useful = std::max<int64_t>(1, s.batch * plan.tiles() / chunk_tiles);
  const int64_t wanted = std::clamp<int64_t>(most_bytes / (size * bytes), 1, std::min(most_chunks, useful));
  const int64_t least_splits = std::clamp<int64_t>(columns / split_columns, 1, (most_chunks - 1) / wanted + 1);
  // The order of a sum depends on the blocks, which therefore depend on the shape alone.
  const int64_t tile_bytes = plan.points() * (terms + columns / least_splits) * bytes;
  const bool far = size / least_splits * bytes > far_bytes;
  const WinogradBlocks blocks(plan, far ? kWinogradFarTiles : std::max<int64_t>(64, block_bytes / tile_bytes),
                              far ? 1 : least_blocks);
  const int64_t strips = s.batch * blocks.strips, chunks = std::min(wanted, strips);
  const int64_t threads = (num_threads() + chunks - 1) / chunks;  // for each chunk
  const int64_t splits = std::max(least_splits, std::min(threads, dy_panels.count()));
  // In the memory of the transformed weights, which are as large: 36 MiB for 512 input and 512 output channels.
  T* sums = scratch<T>(Slot::conv_weights, chunks * size);  // (chunks, points, terms, output channels)
  parallel_for(0, chunks * splits, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t chunk = t / splits, split = t % splits;
      const int64_t p0 = dy_panels.count() * split / splits, p1 = dy_panels.count() * (split + 1) / splits;
      const WinogradOperand<T> input = winograd_source(plan, x_panels, x, 0);
      WinogradOperand<T> gradient(dy, dy_panels, p0, p1, s.out_h, s.out_w, plan.tile(), 1, plan.tile(),
                                  winograd_ops(plan.taps).gradient);
      gradient.add_phase(0, 0);
      winograd_weight_chunk(plan, blocks, input, gradient, strips * chunk / chunks, strips * (chunk + 1) / chunks,
                            {sums + chunk * size + dy_panels.first(p0), point_step, columns});
    }
  });
  const WinogradSums<T> all{sums, point_step, columns};
  parallel_for(0, plan.points(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t point = begin; point < end; ++point) {
      for (int64_t chunk = 1; chunk < chunks; ++chunk)
        conv_ops<T>().add(sums + point * point_step, sums + chunk * size + point * point_step, terms * columns);
    }
  });
  if (!winograd_weight_result(plan, dy_panels, all, dw)) direct_backward_weight(s, x, dy, dw);
}

}  // namespace levin::kernels::cpu::detail
