// Radix sort. A pass counts the digits of each block's keys, adds up the counts, and places every key after the keys
// with its digit of earlier blocks, warps and lanes, which keeps the order among equal digits.

#include "kernels/cuda/indexing/order.h"

#include "kernels/cuda/base/launch.h"

#include <bit>

namespace levin::kernels::cuda {

namespace {

constexpr int kDigits = 256, kSortThreads = 256, kWarps = kSortThreads / 32, kRounds = 16;
constexpr std::int64_t kTile = kSortThreads * kRounds;
static_assert(kSortThreads == kDigits, "thread d looks after digit d");

__device__ inline int digit_of(std::uint64_t key, int shift) { return static_cast<int>(key >> shift & (kDigits - 1)); }

/// Returns the sum of the lanes' values up to this one's.
__device__ inline std::int64_t warp_scan(std::int64_t value) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  LEVIN_PRAGMA_UNROLL
  for (int offset = 1; offset < 32; offset *= 2) {
    const std::int64_t left = __shfl_up_sync(0xffffffffu, value, static_cast<unsigned>(offset));
    if (lane >= offset) value += left;
  }
  return value;
}

/// Returns the sum of the values of the threads before this one.
__device__ inline std::int64_t block_scan_before(std::int64_t value) {
  LEVIN_SHARED(std::int64_t, warps, kWarps);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t sum = warp_scan(value);
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  std::int64_t before = sum - value;
  for (int w = 0; w < warp; ++w) before += warps[w];
  return before;
}

}  // namespace

/// counts (256, blocks): the number of the block's keys with each digit.
__global__ void count_digits(const std::uint64_t* keys, std::int64_t count, int shift, std::int64_t* counts) {
  LEVIN_SHARED(int, seen, kDigits);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t first = blockIdx.x * kTile, end = first + kTile < count ? first + kTile : count;
  seen[thread] = 0;
  __syncthreads();
  for (std::int64_t i = first + thread; i < end; i += kSortThreads) atomicAdd(&seen[digit_of(keys[i], shift)], 1);
  __syncthreads();
  counts[static_cast<std::int64_t>(thread) * gridDim.x + blockIdx.x] = seen[thread];
}

/// One warp per digit: replaces counts by sums over the blocks before; totals (256) are the sums over all blocks.
__global__ void add_digit_counts(std::int64_t* counts, int blocks, std::int64_t* totals) {
  const int digit = static_cast<int>(global_thread() / 32), lane = static_cast<int>(threadIdx.x) % 32;
  std::int64_t* own = counts + static_cast<std::int64_t>(digit) * blocks;
  std::int64_t before = 0;
  for (int first = 0; first < blocks; first += 32) {
    const int block = first + lane;
    const std::int64_t value = block < blocks ? own[block] : 0, sum = warp_scan(value);
    if (block < blocks) own[block] = before + sum - value;
    before += __shfl_sync(0xffffffffu, sum, 31);
  }
  if (lane == 0) totals[digit] = before;
}

/// If places is null, each key's own index is used.
__global__ void place_by_digit(const std::uint64_t* keys, const std::int64_t* places, std::int64_t count, int shift,
                               const std::int64_t* counts, const std::int64_t* totals, std::uint64_t* keys_out,
                               std::int64_t* places_out) {
  LEVIN_SHARED(std::int64_t, next, kDigits);    // position of the next key of each digit
  LEVIN_SHARED(int, in_warp, kWarps, kDigits);  // keys of each digit in each warp, then in the warps before it
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  next[thread] = block_scan_before(totals[thread]) + counts[static_cast<std::int64_t>(thread) * gridDim.x + blockIdx.x];
  const std::int64_t begin = blockIdx.x * kTile, end = begin + kTile < count ? begin + kTile : count;
  for (std::int64_t first = begin; first < end; first += kSortThreads) {
    const std::int64_t i = first + thread;
    const bool inside = i < end;
    const std::uint64_t key = inside ? keys[i] : 0;
    const int digit = inside ? digit_of(key, shift) : kDigits;
    for (int w = 0; w < kWarps; ++w) in_warp[w][thread] = 0;
    __syncthreads();
    const unsigned peers = __match_any_sync(0xffffffffu, digit);
    const int rank = __popc(peers & ((1u << lane) - 1u));
    if (inside && rank == 0) in_warp[warp][digit] = __popc(peers);
    __syncthreads();
    int total = 0;
    for (int w = 0; w < kWarps; ++w) {
      const int own = in_warp[w][thread];
      in_warp[w][thread] = total;
      total += own;
    }
    __syncthreads();
    if (inside) {
      const std::int64_t to = next[digit] + in_warp[warp][digit] + rank;
      keys_out[to] = key;
      places_out[to] = places ? places[i] : i;
    }
    __syncthreads();
    next[thread] += total;
  }
}

StableOrder::StableOrder(Stream& stream, std::int64_t count)
    : stream_(stream),
      count_(count),
      keys_{Scratch<std::uint64_t>(stream, count), Scratch<std::uint64_t>(stream, count)},
      places_{Scratch<std::int64_t>(stream, count), Scratch<std::int64_t>(stream, count)},
      counts_(stream, kDigits * ceil_div(count, kTile)),
      totals_(stream, kDigits) {}

void StableOrder::pass(int shift, bool first) {
  const auto blocks = static_cast<unsigned>(ceil_div(count_, kTile));
  const int from = current_, to = 1 - current_;
  launch(count_digits, {.grid = blocks, .block = kSortThreads, .stream = stream_}, keys_[from].get(), count_, shift,
         counts_.get());
  launch(add_digit_counts, {.grid = kDigits * 32 / kSortThreads, .block = kSortThreads, .stream = stream_},
         counts_.get(), static_cast<int>(blocks), totals_.get());
  launch(place_by_digit, {.grid = blocks, .block = kSortThreads, .stream = stream_}, keys_[from].get(),
         first ? nullptr : places_[from].get(), count_, shift, counts_.get(), totals_.get(), keys_[to].get(),
         places_[to].get());
  current_ = to;
}

void StableOrder::sort(std::int64_t bound) {
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bound > 1 ? bound - 1 : 1)));
  for (int shift = 0; shift < bits; shift += 8) pass(shift, shift == 0);
}

}  // namespace levin::kernels::cuda
