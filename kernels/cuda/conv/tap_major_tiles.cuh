#pragma once
// The tiles of float32 convolutions whose sums run over k = (tap, channel): filters in this order, and the windows of a
// tile's pixels.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/conv/windows.cuh"
#include "kernels/cuda/hgemm/tile.cuh"
#include "kernels/cuda/sgemm/08_async_stages.cuh"

namespace levin::kernels::cuda {

/// A tile of an operand in shared memory, as (k, line), with the padding of FloatWarps.
template <int Lines, int Depth>
struct FloatTapTile {
  static constexpr Layout kLayout = Layout::along_lines;
  static constexpr int kPitch = Lines + 4, kElements = Depth * kPitch;
  __device__ static int at(int step, int line) { return step * kPitch + line; }
};

/// Tiles of 64 x 128 and 16 steps, of 128 threads with 8 x 8 sums each. Half the threads with twice the sums, or tiles
/// twice as wide, need 25 to 40 % more time on an H100.
struct FloatConvTiles {
  using T = float;
  using Warps = FloatWarps<64, 128, 2, 2>;
  static constexpr int kM = Warps::kM, kN = Warps::kN, kDepth = Warps::kDepth, kThreads = Warps::kThreads;
  using A = FloatTapTile<kM, kDepth>;
  using B = FloatTapTile<kN, kDepth>;
  static constexpr int kStage = A::kElements + B::kElements;
};

/// The order of a weight's elements in memory: filter f of a group, channel c and tap of the filter at group * `groups`
/// + f * `filters` + c * `channels` + tap.
struct FilterStrides {
  std::int64_t groups, filters, channels;
};

/// C (rows, pixels of all images) = filters (rows, k) windows (k, pixels) for each group, where k = (tap, channel).
struct TapMajorProduct {
  const float* filters = nullptr;  ///< (groups, k_padded, pitch): k and the rows padded with zeros to whole tiles
  const float* image;              ///< (batch, groups, channels, h.length, w.length)
  WindowAxis h, w;
  int groups, channels, rows, pixels;
  int k, k_padded, pitch;
  FastDivide area, width;  ///< h.pixels * w.pixels, w.pixels

  TapMajorProduct(const float* images, const WindowAxis& axis_h, const WindowAxis& axis_w, const ConvShape& s,
                  int channels_of_a_group, int filters_of_a_group)
      : image(images),
        h(axis_h),
        w(axis_w),
        groups(s.groups),
        channels(channels_of_a_group),
        rows(filters_of_a_group),
        pixels(s.batch * axis_h.pixels * axis_w.pixels),
        k(axis_h.taps * axis_w.taps * channels_of_a_group),
        k_padded(static_cast<int>(ceil_div(k, FloatConvTiles::kDepth)) * FloatConvTiles::kDepth),
        pitch(static_cast<int>(ceil_div(rows, FloatConvTiles::kM)) * FloatConvTiles::kM),
        area(std::int64_t{axis_h.pixels} * axis_w.pixels),
        width(axis_w.pixels) {}
};

/// Writes out (groups, k_padded, pitch), the product's filters, from a weight.
template <class T>
__global__ void conv_copy_filters(const T* weight, T* out, TapMajorProduct p, FilterStrides strides, int kernel_w,
                                  std::int64_t count) {
  for (std::int64_t e = global_thread(); e < count; e += grid_threads()) {
    const int row = static_cast<int>(e % p.pitch), k = static_cast<int>(e / p.pitch % p.k_padded);
    const std::int64_t group = e / p.pitch / p.k_padded;
    T value = 0;
    if (row < p.rows && k < p.k) {
      const int tap = k / p.channels, i_h = tap / p.w.taps, i_w = tap % p.w.taps;
      const int filter_h = p.h.filter_first + i_h * p.h.filter_step;
      const int filter_w = p.w.filter_first + i_w * p.w.filter_step;
      value = weight[group * strides.groups + row * strides.filters + k % p.channels * strides.channels +
                     filter_h * kernel_w + filter_w];
    }
    out[e] = value;
  }
}

/// A thread's part in copying the tiles of a TapMajorProduct: the windows of some pixels, whose places it computes
/// once, and four filters of some steps.
template <class Tiles_>
class TapMajorLoads {
 public:
  using Tiles = Tiles_;
  using Product = TapMajorProduct;

  __device__ TapMajorLoads(const Product& product, const TilePlace& place, const TileGrid&) : p_(product) {
    const int group = static_cast<int>(place.batch);
    plane_ = static_cast<std::int64_t>(p_.h.length) * p_.w.length;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kPixels; ++i) {
      const int pixel = place.column * Tiles::kN + thread() + i * Tiles::kThreads;
      const int item = p_.area.quotient(pixel), inside = p_.area.rest(pixel, item);
      const int row = p_.width.quotient(inside), column = p_.width.rest(inside, row);
      const int h = p_.h.first + row * p_.h.step, w = p_.w.first + column * p_.w.step;
      windows_[i] = (static_cast<std::int64_t>(item) * p_.groups + group) * p_.channels * plane_ +
                    static_cast<std::int64_t>(h) * p_.w.length + w;
      inside_[i] = pixel < p_.pixels ? p_.h.inside(h) | p_.w.inside(w) << 16 : 0;
    }
    filters_ = p_.filters + (static_cast<std::int64_t>(group) * p_.k_padded + step()) * p_.pitch +
               place.row * Tiles::kM + filter();
    begin_tap();
  }

  __device__ int tiles() const { return p_.k_padded / Tiles::kDepth; }

  /// Starts copying the next tile of k to a stage: A's tile, then B's. There must be one.
  __device__ void fetch(float* stage) {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < Tiles::kDepth / kStepsAtOnce; ++i) {
      ptx::cp_async16(stage + Tiles::A::at(step() + i * kStepsAtOnce, filter()), filters_);
      filters_ += static_cast<std::int64_t>(kStepsAtOnce) * p_.pitch;
    }
    float* to = stage + Tiles::A::kElements + thread();
    if (p_.channels % Tiles::kDepth == 0) {  // the same for all threads: a tile holds channels of one tap
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kPixels; ++i) {
        const float* from = p_.image + (windows_[i] + moved_);
        const int bytes = bytes_of(i);
        LEVIN_PRAGMA_UNROLL
        for (int s = 0; s < Tiles::kDepth; ++s, from += plane_)
          ptx::cp_async4(to + Tiles::B::at(s, i * Tiles::kThreads), from, bytes);
      }
      move(Tiles::kDepth);
    } else {
      LEVIN_PRAGMA_UNROLL
      for (int s = 0; s < Tiles::kDepth; ++s) {
        LEVIN_PRAGMA_UNROLL
        for (int i = 0; i < kPixels; ++i)
          ptx::cp_async4(to + Tiles::B::at(s, i * Tiles::kThreads), p_.image + (windows_[i] + moved_), bytes_of(i));
        move(1);
      }
    }
  }

 private:
  static constexpr int kAcross = Tiles::kM / 4, kStepsAtOnce = Tiles::kThreads / kAcross;
  static constexpr int kPixels = Tiles::kN / Tiles::kThreads;
  static_assert(kPixels * Tiles::kThreads == Tiles::kN && Tiles::kDepth % kStepsAtOnce == 0);

  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int step() { return thread() / kAcross; }
  __device__ static int filter() { return thread() % kAcross * 4; }
  __device__ int bytes_of(int i) const { return (inside_[i] & wanted_) == wanted_ ? 4 : 0; }

  __device__ void begin_tap() {  // no window has all bits, which a tap behind the last one wants: see kMostTaps
    moved_ = static_cast<std::int64_t>(i_h_) * p_.h.tap * p_.w.length + i_w_ * p_.w.tap;
    wanted_ = i_h_ < p_.h.taps ? 1u << i_h_ | 0x10000u << i_w_ : ~0u;
  }
  __device__ void move(int channels) {
    channel_ += channels, moved_ += channels * plane_;
    if (channel_ < p_.channels) return;
    channel_ = 0;
    if (++i_w_ == p_.w.taps) i_w_ = 0, ++i_h_;
    begin_tap();
  }

  const Product& p_;
  const float* filters_;
  std::int64_t plane_;             ///< elements of a plane
  std::int64_t windows_[kPixels];  ///< the first taps' places, which may be outside of the image
  std::uint32_t inside_[kPixels];  ///< a bit for each tap of h, and 16 further on for each tap of w
  int channel_ = 0, i_h_ = 0, i_w_ = 0;  ///< of the next step
  std::int64_t moved_;                   ///< the next step's place, relative to the first tap's
  std::uint32_t wanted_;                 ///< the next step's bits
};

}  // namespace levin::kernels::cuda
