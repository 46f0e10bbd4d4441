#pragma once
// Batch norm's two kinds of kernels over x (B, C, S): sums over each channel, and elementwise maps with values of the
// element's channel.

#include "kernels/cuda/indexing/divide.cuh"
#include "kernels/cuda/reduce/group.cuh"

namespace levin::kernels::cuda {

/// The shape of x.
struct ChannelShape {
  std::int64_t batch, channels, spatial;
  Divider by_spatial, by_channels;

  ChannelShape(std::int64_t b, std::int64_t c, std::int64_t s)
      : batch(b), channels(c), spatial(s), by_spatial(small(s)), by_channels(small(c)) {
    if (c == 1) spatial = b * s, batch = 1, by_spatial = Divider(small(spatial));
  }
  std::int64_t numel() const { return batch * channels * spatial; }
  __device__ std::int64_t in_channel() const { return batch * spatial; }
  __device__ std::int64_t channel_of(std::int64_t i) const {
    if (batch * channels * spatial > 0x7fffffff) return i / spatial % channels;
    return by_channels.remainder(by_spatial.quotient(static_cast<std::uint32_t>(i)));
  }

 private:
  /// Sizes that do not fit are never used as divisors.
  static std::uint32_t small(std::int64_t n) {
    return static_cast<std::uint32_t>(n < 1 ? 1 : n > 0x7fffffff ? 0x7fffffff : n);
  }
};

inline constexpr int kChannelThreads = 256, kChannelRows = kChannelThreads / 32;

struct ChannelSums {
  double first = 0.0, second = 0.0;
};

/// Channels are cut along batch and spatial into `cuts` pieces of `each` elements; sums are (C, cuts).
struct ChannelCuts {
  std::int64_t cuts, each;
};

/// For S above 1: a block adds up a piece of a channel, element by element, without a division in the loop.
/// source.centre(c) is subtracted from the channel's terms, source.add(place, centre, sums) adds an element's.
template <class Source>
__global__ void channel_sums(Source source, ChannelShape shape, ChannelCuts cut, ChannelSums* sums) {
  const std::int64_t channel = static_cast<std::int64_t>(blockIdx.x) / cut.cuts;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) % cut.cuts * cut.each;
  const std::int64_t end = begin + cut.each < shape.in_channel() ? begin + cut.each : shape.in_channel();
  const std::int64_t jump = shape.channels * shape.spatial;  // from one b to the next
  const std::int64_t b_step = kChannelThreads / shape.spatial, s_step = kChannelThreads % shape.spatial;
  const double centre = source.centre(channel);
  ChannelSums own;
  std::int64_t i = begin + static_cast<int>(threadIdx.x), b = i / shape.spatial, s = i % shape.spatial;
  for (; i < end; i += kChannelThreads) {
    source.add(b * jump + channel * shape.spatial + s, centre, own);
    b += b_step;
    s += s_step;
    if (s >= shape.spatial) s -= shape.spatial, ++b;
  }
  own.first = block_reduce(own.first, Plus{}, 0.0);
  own.second = block_reduce(own.second, Plus{}, 0.0);
  if (threadIdx.x == 0) sums[blockIdx.x] = own;
}

/// For S = 1: a block adds up a piece of 32 channels, each of its warps every eighth row.
template <class Source>
__global__ void channel_column_sums(Source source, ChannelShape shape, ChannelCuts cut, ChannelSums* sums) {
  LEVIN_SHARED(double, first, kChannelRows, 32);
  LEVIN_SHARED(double, second, kChannelRows, 32);
  const int column = static_cast<int>(threadIdx.x) % 32, row = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t channel = static_cast<std::int64_t>(blockIdx.x) / cut.cuts * 32 + column;
  const std::int64_t piece = static_cast<std::int64_t>(blockIdx.x) % cut.cuts, begin = piece * cut.each;
  const std::int64_t end = begin + cut.each < shape.batch ? begin + cut.each : shape.batch;
  ChannelSums own;
  if (channel < shape.channels) {
    const double centre = source.centre(channel);
    for (std::int64_t b = begin + row; b < end; b += kChannelRows) {
      source.add(b * shape.channels + channel, centre, own);
    }
  }
  first[row][column] = own.first;
  second[row][column] = own.second;
  __syncthreads();
  if (row != 0 || channel >= shape.channels) return;
  for (int r = 1; r < kChannelRows; ++r) {
    own.first += first[r][column];
    own.second += second[r][column];
  }
  sums[channel * cut.cuts + piece] = own;
}

/// One warp per channel adds up the pieces and passes the channel's sums to finish(channel, sums).
template <class Finish>
__global__ void channel_finish(Finish finish, std::int64_t channels, std::int64_t cuts, const ChannelSums* sums) {
  for (std::int64_t c = WarpGroup::number(); c < channels; c += WarpGroup::count()) {
    ChannelSums own;
    for (std::int64_t k = WarpGroup::rank(); k < cuts; k += 32) {
      own.first += sums[c * cuts + k].first;
      own.second += sums[c * cuts + k].second;
    }
    own.first = warp_reduce(own.first, Plus{});
    own.second = warp_reduce(own.second, Plus{});
    if (WarpGroup::rank() == 0) finish(c, own);
  }
}

/// Calls map(place, channel) for every pack of kWidth elements, which belong to one channel.
template <class Map, int kWidth>
__global__ void channel_map(Map map, ChannelShape shape, std::int64_t packs) {
  for (std::int64_t pack = global_thread(); pack < packs; pack += grid_threads()) {
    const std::int64_t at = pack * kWidth;
    map.template run<kWidth>(at, shape.channel_of(at));
  }
}

}  // namespace levin::kernels::cuda
