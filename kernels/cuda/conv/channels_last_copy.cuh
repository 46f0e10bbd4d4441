#pragma once
// Copies with the channels innermost, padded to whole chunks: a pixel's chunk of channels, eight of 16 bits or four
// floats, is 16 bytes at a multiple of 16.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/conv/windows.cuh"
#include "kernels/cuda/transpose/transpose.h"

namespace levin::kernels::cuda {

template <class T>
using Chunk = Pack<T, kChunk<T>>;

/// Writes out (items, positions, chunks) of x (items, channels, positions), one chunk a thread, with zeros for channels
/// that x does not have. Neighbouring threads read neighbouring positions.
template <class T>
__global__ void conv_channels_last_copy(const T* x, Chunk<T>* out, int channels, FastDivide positions,
                                        FastDivide chunks, std::int64_t count) {
  for (std::int64_t e = global_thread(); e < count; e += grid_threads()) {
    const int index = static_cast<int>(e), line = positions.quotient(index), position = positions.rest(index, line);
    const int item = chunks.quotient(line), chunk = chunks.rest(line, item), left = channels - chunk * kChunk<T>;
    const std::int64_t first = static_cast<std::int64_t>(item) * channels + chunk * kChunk<T>;
    const T* from = x + first * positions.divisor + position;
    Chunk<T> values;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kChunk<T>; ++i) {
      values[i] = i < left ? from[static_cast<std::int64_t>(i) * positions.divisor] : convert<T>(0);
    }
    const std::int64_t to = static_cast<std::int64_t>(item) * positions.divisor + position;
    out[to * chunks.divisor + chunk] = values;
  }
}

/// The copy (items, positions, chunks) of x (items, channels, positions).
template <class T>
class ChannelsLast {
 public:
  ChannelsLast(const T* x, std::int64_t items, std::int64_t channels, std::int64_t positions, Stream& stream)
      : memory_(stream, items * positions * ceil_div(channels, kChunk<T>)) {
    const std::int64_t chunks = ceil_div(channels, kChunk<T>), count = items * positions * chunks;
    if (count == 0) return;
    if (channels == chunks * kChunk<T>) {
      const Shape out_strides = {positions * channels, 1, channels}, strides = {channels * positions, positions, 1};
      const Shape sizes = {items, channels, positions};
      if (try_transpose(view(memory_.get(), sizes, out_strides), view(x, sizes, strides), stream)) return;
    }
    launch(conv_channels_last_copy<T>, {.grid = blocks_for(count), .block = 256, .stream = stream}, x, memory_.get(),
           static_cast<int>(channels), FastDivide(positions), FastDivide(chunks), count);
  }
  const Chunk<T>* get() const { return memory_.get(); }

 private:
  static TensorView view(const void* p, const Shape& sizes, const Shape& strides) {
    TensorView v;
    v.pointer = const_cast<void*>(p);
    v.sizes = sizes, v.strides = strides;
    v.dtype = std::is_same_v<T, float> ? DType::f32 : std::is_same_v<T, __half> ? DType::f16 : DType::bf16;
    return v;
  }

  Scratch<Chunk<T>> memory_;
};

}  // namespace levin::kernels::cuda
