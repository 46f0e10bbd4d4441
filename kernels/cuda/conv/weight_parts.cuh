#pragma once
// The weight's gradient from copies of x and y with the channels innermost: a long sum over pixels, computed in parts.

#include "kernels/cuda/conv/channels_last_tiles.cuh"
#include "kernels/cuda/matmul/epilogue.cuh"

namespace levin::kernels::cuda {

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

/// Splits k until there is a block for each place of a large device, and each has at least eight tiles of k. A function
/// of the shape alone, so that results are the same on every device.
template <class Tiles>
TileGrid split_grid(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t groups, int resident) {
  constexpr std::int64_t multiprocessors = 132, shortest = 8;
  TileGrid grid = tile_grid(m, n, k, groups, Tiles::kM, Tiles::kN, Tiles::kDepth);
  const std::int64_t tiles = ceil_div(k, Tiles::kDepth);
  const std::int64_t parts =
      std::max<std::int64_t>(1, std::min(multiprocessors * resident / grid.count(), tiles / shortest));
  grid.k_part = ceil_div(tiles, parts) * Tiles::kDepth;
  grid.splits = static_cast<int>(std::max<std::int64_t>(1, ceil_div(k, std::max<std::int64_t>(1, grid.k_part))));
  return grid;
}

/// Computes the weight's gradient. Calls multiply(WeightProduct, Epilogue, TileGrid, stream) to compute the parts by
/// tiles; `resident` such blocks run at once on a multiprocessor.
template <class Loads, class T, class F>
void weight_in_parts(const ConvTensors<T>& t, const ConvShape& s, int resident, Stream& stream, F&& multiply) {
  const std::int64_t lines = std::int64_t{s.groups} * s.outputs;
  if (lines * s.taps() == 0) return;
  const ChannelsLast<T> x(t.x, std::int64_t{s.batch} * s.groups, s.inputs, s.in_plane(), stream);
  const ChannelsLast<T> y(t.y, std::int64_t{s.batch} * s.groups, s.outputs, s.out_plane(), stream);
  const WeightProduct<T> product(y.get(), x.get(), s);
  Problem<T> whole;
  whole.m = s.outputs, whole.n = product.columns(), whole.batch = s.groups;
  const TileGrid grid = split_grid<typename Loads::Tiles>(whole.m, whole.n, product.pixels, s.groups, resident);
  const std::int64_t count = lines * whole.n;
  const Scratch<float> parts(stream, grid.splits * count);
  Epilogue<T> out(whole);
  out.parts = parts.get();
  multiply(product, out, grid, stream);
  launch(conv_add_parts<T>, {.grid = blocks_for(count), .block = 256, .stream = stream}, parts.get(), t.weight,
         grid.splits, s.inputs, static_cast<int>(s.kernel()), static_cast<int>(whole.n / s.kernel()), count);
}

}  // namespace levin::kernels::cuda
