#pragma once
// The tiles of convolutions on images whose channels are innermost (channels_last_copy.cuh): their geometry, and their
// copies to shared memory, 16 bytes at once.

#include "kernels/cuda/conv/channels_last_copy.cuh"
#include "kernels/cuda/hgemm/tile.cuh"

namespace levin::kernels::cuda {

/// C (rows, pixels of all images) = filters (rows, k) windows (k, pixels) for each group, where k = (tap, channel).
template <class T>
struct WindowProduct {
  const Chunk<T>* filters;  ///< (groups, rows, kernel_h, kernel_w, chunks)
  const Chunk<T>* image;    ///< (batch, groups, h.length, w.length, chunks)
  WindowAxis h, w;
  int kernel_h, kernel_w, groups, rows, pixels;
  int k;                                   ///< in chunks
  FastDivide chunks, taps_w, area, width;  ///< of a tap; h.pixels * w.pixels, w.pixels

  WindowProduct(const Chunk<T>* all_filters, const Chunk<T>* images, const WindowAxis& axis_h, const WindowAxis& axis_w,
                const ConvShape& s, int channels, int filters_of_a_group)
      : filters(all_filters),
        image(images),
        h(axis_h),
        w(axis_w),
        kernel_h(s.kernel_h),
        kernel_w(s.kernel_w),
        groups(s.groups),
        rows(filters_of_a_group),
        pixels(s.batch * axis_h.pixels * axis_w.pixels),
        k(axis_h.taps * axis_w.taps * static_cast<int>(ceil_div(channels, kChunk<T>))),
        chunks(ceil_div(channels, kChunk<T>)),
        taps_w(axis_w.taps),
        area(std::int64_t{axis_h.pixels} * axis_w.pixels),
        width(axis_w.pixels) {}
};

/// A thread's part in copying the tiles of a WindowProduct. It copies one chunk of some filters and windows, whose
/// places it computes once; in each tile of k it moves all of them to another tap or channel.
template <class Tiles_>
class WindowLoads {
 public:
  using Tiles = Tiles_;
  using T = typename Tiles::T;
  using Product = WindowProduct<T>;
  static_assert(Tiles::A::kLayout == Layout::along_k && Tiles::B::kLayout == Layout::along_k);

  __device__ WindowLoads(const Product& product, const TilePlace& place, const TileGrid&)
      : p_(product), chunk_(across()) {
    const int row = place.row * Tiles::kM + line(0), chunks = static_cast<int>(p_.chunks.divisor);
    const int group = static_cast<int>(place.batch);
    rows_left_ = p_.rows - row;
    filters_ = p_.filters + (place.batch * p_.rows + row) * filter_chunks();
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kWindows; ++i) {
      const int pixel = place.column * Tiles::kN + line(i);
      const int item = p_.area.quotient(pixel), inside = p_.area.rest(pixel, item);
      const int row_of_image = p_.width.quotient(inside), column = p_.width.rest(inside, row_of_image);
      const int h = p_.h.first + row_of_image * p_.h.step, w = p_.w.first + column * p_.w.step;
      windows_[i] = (((item * p_.groups + group) * p_.h.length + h) * p_.w.length + w) * chunks;
      inside_[i] = pixel < p_.pixels ? p_.h.inside(h) | p_.w.inside(w) << 16 : 0;
    }
  }

  __device__ int tiles() const { return (p_.k + kAcross - 1) / kAcross; }  ///< of k

  /// Starts copying the next tile of k to a stage: A's tile, then B's. There must be one.
  __device__ void fetch(T* stage) {
    const bool exists = chunk_ < p_.k;
    const int chunks = static_cast<int>(p_.chunks.divisor);
    const int tap = p_.chunks.quotient(chunk_), channel = p_.chunks.rest(chunk_, tap);
    const int i_h = p_.taps_w.quotient(tap), i_w = p_.taps_w.rest(tap, i_h);
    const int filter_h = p_.h.filter_first + i_h * p_.h.filter_step;
    const int filter_w = p_.w.filter_first + i_w * p_.w.filter_step;
    const Chunk<T>* filter = filters_ + (filter_h * p_.kernel_w + filter_w) * chunks + channel;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kFilters; ++i, filter += kLinesAtOnce * filter_chunks()) {
      const bool copied = exists && i * kLinesAtOnce < rows_left_;
      ptx::cp_async16(stage + Tiles::A::at(line(i), across() * kChunk<T>), filter, copied ? 16 : 0);
    }
    const std::uint32_t wanted = exists ? 1u << i_h | 0x10000u << i_w : ~0u;  // no window has all bits: see kMostTaps
    const int moved = (i_h * p_.h.tap * p_.w.length + i_w * p_.w.tap) * chunks + channel;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kWindows; ++i) {
      ptx::cp_async16(stage + Tiles::A::kElements + Tiles::B::at(line(i), across() * kChunk<T>),
                      p_.image + (windows_[i] + moved), (inside_[i] & wanted) == wanted ? 16 : 0);
    }
    chunk_ += kAcross;
  }

 private:
  static constexpr int kAcross = Tiles::kDepth / kChunk<T>, kLinesAtOnce = Tiles::kThreads / kAcross;
  static constexpr int kFilters = Tiles::kM / kLinesAtOnce, kWindows = Tiles::kN / kLinesAtOnce;

  __device__ static int across() { return static_cast<int>(threadIdx.x) % kAcross; }
  __device__ static int line(int i) { return static_cast<int>(threadIdx.x) / kAcross + i * kLinesAtOnce; }
  __device__ int filter_chunks() const { return p_.kernel_h * p_.kernel_w * static_cast<int>(p_.chunks.divisor); }

  const Product& p_;
  int chunk_;      ///< this thread's chunk of the next tile of k
  int rows_left_;  ///< from this thread's first filter on
  const Chunk<T>* filters_;
  int windows_[kWindows];           ///< in chunks of the image
  std::uint32_t inside_[kWindows];  ///< a bit for each tap of h, and 16 further on for each tap of w
};

/// C (outputs, taps and channels) = y (outputs, k) windows (k, taps and channels) for each group, where k are the
/// pixels of y.
template <class T>
struct WeightProduct {
  const Chunk<T>*y, *x;  ///< (batch, groups, out_h, out_w, y_chunks), (batch, groups, in_h, in_w, chunks)
  ConvShape s;
  FastDivide chunks, taps_w, area, width;  ///< of a tap of x; out_h * out_w, out_w
  int y_chunks, pixels;

  WeightProduct(const Chunk<T>* gradient, const Chunk<T>* image, const ConvShape& shape)
      : y(gradient),
        x(image),
        s(shape),
        chunks(ceil_div(s.inputs, kChunk<T>)),
        taps_w(s.kernel_w),
        area(s.out_plane()),
        width(s.out_w),
        y_chunks(static_cast<int>(ceil_div(s.outputs, kChunk<T>))),
        pixels(static_cast<int>(s.batch * s.out_plane())) {}

  int columns() const { return s.kernel_h * s.kernel_w * static_cast<int>(chunks.divisor * kChunk<T>); }
};

/// A thread's part in copying the tiles of a WeightProduct. It copies the same chunks of outputs, and the same taps and
/// chunks of channels, at several pixels of each tile.
template <class Tiles_>
class WeightLoads {
 public:
  using Tiles = Tiles_;
  using T = typename Tiles::T;
  using Product = WeightProduct<T>;
  static_assert(Tiles::A::kLayout == Layout::along_lines && Tiles::B::kLayout == Layout::along_lines);

  __device__ WeightLoads(const Product& product, const TilePlace& place, const TileGrid& grid)
      : p_(product), group_(static_cast<int>(place.batch)), k_(place.split * static_cast<int>(grid.k_part)) {
    const int k_part = static_cast<int>(grid.k_part), left = p_.pixels - k_ < k_part ? p_.pixels - k_ : k_part;
    tiles_ = (left + Tiles::kDepth - 1) / Tiles::kDepth;
    output_ = place.row * (Tiles::kM / kChunk<T>) + across();
    LEVIN_PRAGMA_UNROLL
    for (int j = 0; j < kTaps; ++j) {
      const int column = place.column * (Tiles::kN / kChunk<T>) + j * kAcross + across();
      const int tap = p_.chunks.quotient(column), i_h = p_.taps_w.quotient(tap), i_w = p_.taps_w.rest(tap, i_h);
      h_[j] = i_h * p_.s.dilation_h - p_.s.padding_h, w_[j] = i_w * p_.s.dilation_w - p_.s.padding_w;
      moved_[j] = (h_[j] * p_.s.in_w + w_[j]) * static_cast<int>(p_.chunks.divisor) + p_.chunks.rest(column, tap);
      if (i_h >= p_.s.kernel_h) h_[j] = -(1 << 30);  // a column that does not exist lies outside of every image
    }
  }

  __device__ int tiles() const { return tiles_; }  ///< in this part of k

  /// Starts copying the next tile of k to a stage: A's tile, then B's. There must be one.
  __device__ void fetch(T* stage) {
    const ConvShape& s = p_.s;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kPixels; ++i) {
      const int line = static_cast<int>(threadIdx.x) / kAcross + i * kPixelsAtOnce, pixel = k_ + line;
      const int item = p_.area.quotient(pixel), inside = p_.area.rest(pixel, item), image = item * s.groups + group_;
      const int row = p_.width.quotient(inside), column = p_.width.rest(inside, row);
      const bool exists = pixel < p_.pixels;
      const int output = (image * static_cast<int>(p_.area.divisor) + inside) * p_.y_chunks + output_;
      LEVIN_PRAGMA_UNROLL
      for (int j = 0; j < kOutputs; ++j) {
        ptx::cp_async16(stage + Tiles::A::at(line, (j * kAcross + across()) * kChunk<T>), p_.y + (output + j * kAcross),
                        exists && output_ + j * kAcross < p_.y_chunks ? 16 : 0);
      }
      const int h = row * s.stride_h, w = column * s.stride_w;
      const int window = ((image * s.in_h + h) * s.in_w + w) * static_cast<int>(p_.chunks.divisor);
      LEVIN_PRAGMA_UNROLL
      for (int j = 0; j < kTaps; ++j) {
        const bool copied = exists && static_cast<unsigned>(h + h_[j]) < static_cast<unsigned>(s.in_h) &&
                            static_cast<unsigned>(w + w_[j]) < static_cast<unsigned>(s.in_w);
        ptx::cp_async16(stage + Tiles::A::kElements + Tiles::B::at(line, (j * kAcross + across()) * kChunk<T>),
                        p_.x + (window + moved_[j]), copied ? 16 : 0);
      }
    }
    k_ += Tiles::kDepth;
  }

 private:
  static constexpr int kAcross = 8, kPixelsAtOnce = Tiles::kThreads / kAcross;  ///< whole lines of 128 bytes
  static constexpr int kPixels = Tiles::kDepth / kPixelsAtOnce;
  static constexpr int kOutputs = Tiles::kM / kChunk<T> / kAcross, kTaps = Tiles::kN / kChunk<T> / kAcross;

  __device__ static int across() { return static_cast<int>(threadIdx.x) % kAcross; }

  const Product& p_;
  int group_, k_, tiles_;    ///< k_: the next tile's first pixel
  int output_;               ///< chunk of y's channels
  int h_[kTaps], w_[kTaps];  ///< a tap's offsets from a window's first pixel without padding
  int moved_[kTaps];         ///< both, and the chunk of channels, in chunks of x
};

}  // namespace levin::kernels::cuda
