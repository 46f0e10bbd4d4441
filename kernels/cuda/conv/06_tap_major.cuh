#pragma once
// Rung 6, which ships for float32 where tiles of 64 x 128 fill the device: implicit GEMM with k = (tap, channel).
// Idea: a thread copies the window of one pixel, which it locates once. From step to step all threads move alike, from
// channel to channel and from tap to tap, and a bit tells whether a tap lies within the image, as in rung 5. The
// filters are first copied to (k, filters), so that 16 bytes of them move at once. The input's gradient of a strided
// convolution is one product for each remainder, as in rung 5; the weight's gradient is rung 5's sum over copies with
// the channels innermost, of which 16 bytes move at once. Changes against rung 3: a copy needs three instructions
// instead of some twenty, and a thread has 64 sums instead of 32. Bound: the multipliers.

#include "kernels/cuda/conv/channels_last_tiles.cuh"
#include "kernels/cuda/conv/tap_major_tiles.cuh"
#include "kernels/cuda/conv/weight_parts.cuh"
#include "kernels/cuda/conv/window_out.cuh"

namespace levin::kernels::cuda {

inline constexpr int kFloatConvStages = 3;

/// Computes a tile of a product, of a part of k. Loads is TapMajorLoads or WeightLoads.
template <class Loads, class Out>
__global__ void __launch_bounds__(Loads::Tiles::kThreads, Loads::Tiles::Warps::kResident)
    conv_tap_major(typename Loads::Product product, Out out, TileGrid grid) {
  using Tiles = typename Loads::Tiles;
  constexpr int kLast = (kFloatConvStages - 1) * Tiles::kStage;
  float* shared = dynamic_shared<float>();  // (stage, A's tile then B's)
  const TilePlace place = grid.at(blockIdx.x);
  Loads loads(product, place, grid);
  const int tiles = loads.tiles();
  const auto fetch = [&](int tile, int stage) {  // an empty group keeps the count when no tile is left
    if (tile < tiles) loads.fetch(shared + stage);
    ptx::cp_async_commit();
  };
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < kFloatConvStages - 1; ++i) fetch(i, i * Tiles::kStage);

  typename Tiles::Warps warps;
  int stage = 0;  // offset in floats; the number of the stage needs one more register, and sm_80 would spill a sum
  for (int tile = 0; tile < tiles; ++tile) {
    ptx::cp_async_wait<kFloatConvStages - 2>();  // the stage has arrived
    __syncthreads();                             // for all threads, and all have read the one before it
    fetch(tile + kFloatConvStages - 1, stage == 0 ? kLast : stage - Tiles::kStage);
    const float* a = shared + stage;
    warps.multiply(a, a + Tiles::A::kElements);
    stage = stage == kLast ? 0 : stage + Tiles::kStage;
  }
  warps.write(out, place, place.row * Tiles::kM, place.column * Tiles::kN);
}

struct TapMajorConv {
  using Tiles = FloatConvTiles;
  using T = float;

  static void forward(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    if (s.batch * s.y_image() == 0) return;
    const auto h = WindowAxis::forward(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.padding_h, s.dilation_h);
    const auto w = WindowAxis::forward(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.padding_w, s.dilation_w);
    run({t.x, h, w, s, s.inputs, s.outputs}, t.weight, {s.outputs * s.taps(), s.taps(), s.kernel()}, s.kernel_w,
        {t.y, t.bias, s.outputs, s.groups, s.batch, h, w, s.out_h, s.out_w}, stream);
  }

  static void backward_input(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    if (s.batch * s.x_image() == 0) return;
    for (int i = 0; i < std::min(s.stride_h, s.in_h); ++i) {
      const auto h = WindowAxis::backward(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.padding_h, s.dilation_h, i);
      for (int j = 0; j < std::min(s.stride_w, s.in_w); ++j) {
        const auto w = WindowAxis::backward(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.padding_w, s.dilation_w, j);
        run({t.y, h, w, s, s.outputs, s.inputs}, t.weight, {s.outputs * s.taps(), s.kernel(), s.taps()}, s.kernel_w,
            {t.x, t.bias, s.inputs, s.groups, s.batch, h, w, s.in_h, s.in_w}, stream);
      }
    }
  }

  static void backward_weight(const ConvTensors<T>& t, const ConvShape& s, Stream& stream) {
    using Loads = WeightLoads<Tiles>;
    weight_in_parts<Loads>(t, s, Tiles::Warps::kResident, stream, launch_tiles<Loads, Epilogue<T>>);
  }

 private:
  static void run(TapMajorProduct product, const T* weight, const FilterStrides& strides, int kernel_w,
                  const WindowOut<T>& out, Stream& stream) {
    const std::int64_t count = std::int64_t{product.groups} * product.k_padded * product.pitch;
    const Scratch<T> filters(stream, count);
    launch(conv_copy_filters<T>, {.grid = count == 0 ? 0 : blocks_for(count), .block = 256, .stream = stream}, weight,
           filters.get(), product, strides, kernel_w, count);
    product.filters = filters.get();
    launch_tiles<TapMajorLoads<Tiles>>(product, out, grid_of<Tiles>(product), stream);
  }

  template <class Loads, class Out>
  static void launch_tiles(const typename Loads::Product& product, const Out& out, const TileGrid& grid,
                           const Stream& stream) {
    launch(conv_tap_major<Loads, Out>,
           {.grid = static_cast<unsigned>(grid.count()),
            .block = Tiles::kThreads,
            .shared = sizeof(T) * Tiles::kStage * kFloatConvStages,
            .stream = stream},
           product, out, grid);
  }
};

}  // namespace levin::kernels::cuda
