#pragma once
// Rung 5, which ships for 16-bit floats where it can run: implicit GEMM on images whose channels are innermost.
// Idea: x and y are first copied from (batch, channels, plane) to (batch, plane, channels), and the weight to (outputs,
// taps, channels), with the channels padded to a multiple of eight. With k = (tap, channel), eight neighbours of k are
// then 16 bytes that cp.async moves at once, with zeros for those outside of the image. Three stages of tiles are in
// flight, as in the hgemm ladder's rung 5. A thread locates its pixels once and moves them from tap to tap. The input's
// gradient of a strided convolution is one product for each remainder of the positions, so that no inserted zeros are
// multiplied. The weight's gradient sums over pixels, in parts that are added up in order. Changes against rung 4: an
// eighth of the loads and addresses, no registers for data in flight, tiles of 64 x 128, and the traffic of the copies.
// Bound: L2's bandwidth for the tiles, and memory's for the copies.

#include "kernels/cuda/conv/channels_last_tiles.cuh"

namespace levin::kernels::cuda {

/// Stores the columns of a WindowProduct, which are pixels of a batch of images, to y (batch, groups * rows, height,
/// width), with one bias per channel.
template <class T>
struct WindowOut {
  T* data;
  const T* bias;  ///< (groups * rows); may be null
  int rows, pixels, channels, image_width;
  std::int64_t plane;
  int h_first, h_step, w_first, w_step;
  FastDivide area, width;
  bool pairs;  ///< true if two neighbouring columns, the first one even, are neighbours in memory

  WindowOut(T* to, const T* channel_bias, const WindowProduct<T>& p, int height, int row_length)
      : data(to),
        bias(channel_bias),
        rows(p.rows),
        pixels(p.pixels),
        channels(p.groups * p.rows),
        image_width(row_length),
        plane(std::int64_t{height} * row_length),
        h_first(p.h.out_first),
        h_step(p.h.out_step),
        w_first(p.w.out_first),
        w_step(p.w.out_step),
        area(p.area),
        width(p.width),
        pairs(h_step == 1 && w_step == 1 && plane % 2 == 0 && reinterpret_cast<std::uintptr_t>(to) % 4 == 0) {}

  __device__ void write(const TilePlace& place, int row, int column, const float (&sums)[2]) const {
    if (row >= rows || column >= pixels) return;
    const int channel = static_cast<int>(place.batch) * rows + row;
    const float shift = bias ? convert<float>(bias[channel]) : 0;
    if (pairs) {
      const int item = area.quotient(column), inside = area.rest(column, item);
      Pack<T, 2> values;
      values[0] = convert<T>(sums[0] + shift), values[1] = convert<T>(sums[1] + shift);
      pack_at<2>(data + (static_cast<std::int64_t>(item) * channels + channel) * plane + inside) = values;
      return;
    }
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < 2; ++i) {
      if (column + i >= pixels) return;
      const int item = area.quotient(column + i), inside = area.rest(column + i, item);
      const int h = width.quotient(inside), w = width.rest(inside, h);
      const std::int64_t to = static_cast<std::int64_t>(h_first + h * h_step) * image_width + w_first + w * w_step;
      data[(static_cast<std::int64_t>(item) * channels + channel) * plane + to] = convert<T>(sums[i] + shift);
    }
  }
};

inline constexpr int kConvStages = 3, kConvResident = 3;  ///< blocks that run at once on a multiprocessor

/// Computes a tile of a product, of a part of k. Loads is WindowLoads or WeightLoads.
template <class Loads, class Out>
__global__ void __launch_bounds__(Loads::Tiles::kThreads, kConvResident)
    conv_channels_last(typename Loads::Product product, Out out, TileGrid grid) {
  using Tiles = typename Loads::Tiles;
  using T = typename Tiles::T;
  T* shared = dynamic_shared<T>();  // (stage, A's tile then B's)
  const TilePlace place = grid.at(blockIdx.x);
  Loads loads(product, place, grid);
  const int tiles = loads.tiles();
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < kConvStages - 1; ++i) {
    if (i < tiles) loads.fetch(shared + i * Tiles::kStage);
    ptx::cp_async_commit();  // an empty group keeps the count when no tile is left
  }

  WarpSums<Tiles> warp;
  int stage = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    ptx::cp_async_wait<kConvStages - 2>();  // the stage has arrived
    __syncthreads();                        // for all threads, and all have read the one before it
    LEVIN_PRAGMA_UNROLL
    for (int s = 0; s < Tiles::kSteps; ++s) {
      Fragments<Tiles> fragments;
      fragments.load(shared + stage * Tiles::kStage, warp.row, warp.column, s * 16);
      if (s == 0) {  // while the first fragments arrive
        const int last = stage == 0 ? kConvStages - 1 : stage - 1;
        if (tile + kConvStages - 1 < tiles) loads.fetch(shared + last * Tiles::kStage);
        ptx::cp_async_commit();
      }
      warp.multiply(fragments);
    }
    stage = stage + 1 == kConvStages ? 0 : stage + 1;
  }
  warp.write(out, place);
}

/// Adds up the parts (splits, groups * outputs, kernel, padded) in order, and stores the weight's gradient (groups *
/// outputs, inputs, kernel).
template <class T>
__global__ void conv_add_parts(const float* parts, T* weight, int splits, int inputs, int kernel, int padded,
                               std::int64_t count) {
  for (std::int64_t e = global_thread(); e < count; e += grid_threads()) {
    const std::int64_t line = e / padded, channel = e % padded;
    if (channel >= inputs) continue;
    float sum = 0;
    for (int i = 0; i < splits; ++i) sum += parts[i * count + e];
    weight[(line / kernel * inputs + channel) * kernel + line % kernel] = convert<T>(sum);
  }
}

template <class T>
struct ChannelsLastConv {
  template <Layout layout>
  using Tiles = HalfTiles<T, layout, layout, 64, 128, 64, 32, 64, true>;  // 128 threads, 72 KiB with three stages
  using Windows = WindowLoads<Tiles<Layout::along_k>>;
  using Weights = WeightLoads<Tiles<Layout::along_lines>>;

  static void forward(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    if (s.batch * s.y_image() == 0) return;
    const std::int64_t groups = s.groups;
    const ChannelsLast<T> x(t.x, s.batch * groups, s.inputs, s.in_plane(), stream);
    const ChannelsLast<T> weight(t.weight, groups * s.outputs, s.inputs, s.kernel(), stream);
    const auto h = WindowAxis::forward(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.padding_h, s.dilation_h);
    const auto w = WindowAxis::forward(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.padding_w, s.dilation_w);
    const WindowProduct<T> product(weight.get(), x.get(), h, w, s, s.inputs, s.outputs);
    run(product, WindowOut<T>(t.y, t.bias, product, s.out_h, s.out_w), stream);
  }

  static void backward_input(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    if (s.batch * s.x_image() == 0) return;
    const std::int64_t groups = s.groups;
    const ChannelsLast<T> y(t.y, s.batch * groups, s.outputs, s.out_plane(), stream);
    const ChannelsLast<T> weight(t.weight, groups, s.outputs, s.taps(), stream);  // (groups, inputs, kernel, outputs)
    for (int i = 0; i < std::min(s.stride_h, s.in_h); ++i) {
      const auto h = WindowAxis::backward(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.padding_h, s.dilation_h, i);
      for (int j = 0; j < std::min(s.stride_w, s.in_w); ++j) {
        const auto w = WindowAxis::backward(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.padding_w, s.dilation_w, j);
        const WindowProduct<T> product(weight.get(), y.get(), h, w, s, s.outputs, s.inputs);
        run(product, WindowOut<T>(t.x, t.bias, product, s.in_h, s.in_w), stream);
      }
    }
  }

  static void backward_weight(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    const std::int64_t lines = std::int64_t{s.groups} * s.outputs;
    if (lines * s.taps() == 0) return;
    const ChannelsLast<T> x(t.x, std::int64_t{s.batch} * s.groups, s.inputs, s.in_plane(), stream);
    const ChannelsLast<T> y(t.y, std::int64_t{s.batch} * s.groups, s.outputs, s.out_plane(), stream);
    const WeightProduct<T> product(y.get(), x.get(), s);
    Problem<T> whole;
    whole.m = s.outputs, whole.n = product.columns(), whole.batch = s.groups;
    const TileGrid grid = split_grid(whole.m, whole.n, product.pixels, s.groups);
    const std::int64_t count = lines * whole.n;
    const Scratch<float> parts(stream, grid.splits * count);
    Epilogue<T> out(whole);
    out.parts = parts.get();
    launch_tiles<Weights>(product, out, grid, stream);
    launch(conv_add_parts<T>, {.grid = blocks_for(count), .block = 256, .stream = stream}, parts.get(), t.weight,
           grid.splits, s.inputs, static_cast<int>(s.kernel()), static_cast<int>(whole.n / s.kernel()), count);
  }

 private:
  static void run(const WindowProduct<T>& product, const WindowOut<T>& out, const Stream& stream) {
    using P = typename Windows::Tiles;
    TileGrid grid = tile_grid(product.rows, product.pixels, 0, product.groups, P::kM, P::kN, P::kDepth);
    grid.group = 8;
    launch_tiles<Windows>(product, out, grid, stream);
  }

  /// Splits k until there is a block for each place of a large device, and each has at least eight tiles of k. A
  /// function of the shape alone, so that results are the same on every device.
  static TileGrid split_grid(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t groups) {
    using P = typename Weights::Tiles;
    constexpr std::int64_t wanted = 132 * kConvResident, shortest = 8;
    TileGrid grid = tile_grid(m, n, k, groups, P::kM, P::kN, P::kDepth);
    const std::int64_t tiles = ceil_div(k, P::kDepth);
    const std::int64_t parts = std::max<std::int64_t>(1, std::min(wanted / grid.count(), tiles / shortest));
    grid.k_part = ceil_div(tiles, parts) * P::kDepth;
    grid.splits = static_cast<int>(std::max<std::int64_t>(1, ceil_div(k, std::max<std::int64_t>(1, grid.k_part))));
    return grid;
  }

  template <class Loads, class Out>
  static void launch_tiles(const typename Loads::Product& product, const Out& out, const TileGrid& grid,
                           const Stream& stream) {
    launch(conv_channels_last<Loads, Out>,
           {.grid = static_cast<unsigned>(grid.count()),
            .block = Loads::Tiles::kThreads,
            .shared = sizeof(T) * Loads::Tiles::kStage * kConvStages,
            .stream = stream},
           product, out, grid);
  }
};

}  // namespace levin::kernels::cuda
