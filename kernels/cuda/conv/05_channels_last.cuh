#pragma once
// Rung 5, which ships for 16-bit floats where rung 7 does not: implicit GEMM on images whose channels are innermost.
// Idea: x and y are first copied from (batch, channels, plane) to (batch, plane, channels), and the weight to (outputs,
// taps, channels), with the channels padded to a multiple of eight. With k = (tap, channel), eight neighbours of k are
// then 16 bytes that cp.async moves at once, with zeros for those outside of the image. Three stages of tiles are in
// flight, as in the hgemm ladder's rung 5. A thread locates its pixels once and moves them from tap to tap. The input's
// gradient of a strided convolution is one product for each remainder of the positions, so that no inserted zeros are
// multiplied. The weight's gradient sums over pixels, in parts that are added up in order. Changes against rung 4: an
// eighth of the loads and addresses, no registers for data in flight, tiles of 64 x 128, and the traffic of the copies.
// Bound: L2's bandwidth for the tiles, and memory's for the copies.

#include "kernels/cuda/conv/channels_last_tiles.cuh"
#include "kernels/cuda/conv/weight_parts.cuh"
#include "kernels/cuda/conv/window_out.cuh"

namespace levin::kernels::cuda {

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

/// Launches Loads' tiles of a product.
template <class Loads, class Out>
void launch_conv_tiles(const typename Loads::Product& product, const Out& out, const TileGrid& grid,
                       const Stream& stream) {
  using Tiles = typename Loads::Tiles;
  launch(conv_channels_last<Loads, Out>,
         {.grid = static_cast<unsigned>(grid.count()),
          .block = Tiles::kThreads,
          .shared = sizeof(typename Tiles::T) * Tiles::kStage * kConvStages,
          .stream = stream},
         product, out, grid);
}

template <class T, Layout layout>
using HalfConvTiles = HalfTiles<T, layout, layout, 64, 128, 64, 32, 64, true>;  // 128 threads, 72 KiB with three stages

/// Computes a WindowProduct by tiles.
template <class T>
struct WindowTiles {
  using Tiles = HalfConvTiles<T, Layout::along_k>;

  static void run(const WindowProduct<T>& product, const WindowOut<T>& out, Stream& stream) {
    launch_conv_tiles<WindowLoads<Tiles>>(product, out, grid_of<Tiles>(product), stream);
  }
};

/// Windows: how to compute a WindowProduct.
template <class T, class Windows>
struct ChannelsLastConv {
  static void forward(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    if (s.batch * s.y_image() == 0) return;
    const std::int64_t groups = s.groups;
    const ChannelsLast<T> x(t.x, s.batch * groups, s.inputs, s.in_plane(), stream);
    const ChannelsLast<T> weight(t.weight, groups * s.outputs, s.inputs, s.kernel(), stream);
    const auto h = WindowAxis::forward(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.padding_h, s.dilation_h);
    const auto w = WindowAxis::forward(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.padding_w, s.dilation_w);
    const WindowProduct<T> product(weight.get(), x.get(), h, w, s, s.inputs, s.outputs);
    Windows::run(product, WindowOut<T>(t.y, t.bias, s.outputs, s.groups, s.batch, h, w, s.out_h, s.out_w), stream);
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
        Windows::run(product, WindowOut<T>(t.x, t.bias, s.inputs, s.groups, s.batch, h, w, s.in_h, s.in_w), stream);
      }
    }
  }

  static void backward_weight(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    using Loads = WeightLoads<HalfConvTiles<T, Layout::along_lines>>;
    weight_in_parts<Loads>(t, s, kConvResident, stream, launch_conv_tiles<Loads, Epilogue<T>>);
  }
};

}  // namespace levin::kernels::cuda
