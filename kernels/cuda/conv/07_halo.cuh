#pragma once
// Rung 7, which ships for 16-bit floats where a filter has several taps and its channels fill slabs of 64: all taps
// read the same pixels in shared memory.
// Idea: neighbouring windows overlap. For a slab of 64 channels, a block copies once all positions that the windows of
// its 128 pixels reach, their halo included, zeros outside of the image among them. Positions are numbered as in an
// image padded by the filter's reach, so that a tap is a constant shift, which ldmatrix adds to the rows of its eight
// pixels. Only the filters still come as a ring of tiles, one for each tap and slab. Changes against rung 5: for 3 x 3
// taps a sixth of the windows' traffic. Windows that do not advance by one pixel, and halos that do not fit, take rung
// 5. Bound: ldmatrix and mma.sync, and memory for the copies.

#include "kernels/cuda/conv/05_channels_last.cuh"

#include <cstdlib>

namespace levin::kernels::cuda {

/// The positions of an image padded by the reach of a filter's taps, and the part of them that a tile of pixels needs.
struct Halo {
  int low_h, low_w;            ///< the image's coordinates of the padded image's first row and column
  int least_h, least_w;        ///< the least offset of a tap
  FastDivide area, width;      ///< of the padded image
  std::int64_t positions;      ///< most that a tile needs
  std::int64_t all;            ///< of all images

  template <class T>
  Halo(const WindowProduct<T>& p, int tile)
      : least_h(std::min(0, (p.h.taps - 1) * p.h.tap)), least_w(std::min(0, (p.w.taps - 1) * p.w.tap)) {
    low_h = p.h.first + least_h, low_w = p.w.first + least_w;
    const std::int64_t reach_h = std::abs((p.h.taps - 1) * p.h.tap), reach_w = std::abs((p.w.taps - 1) * p.w.tap);
    const std::int64_t rows = p.h.pixels + reach_h, columns = p.w.pixels + reach_w, last = tile - 1;
    area = FastDivide(rows * columns), width = FastDivide(columns);
    const std::int64_t new_rows = ceil_div(last, std::max(1, p.w.pixels));
    const std::int64_t new_images = ceil_div(last, std::max<std::int64_t>(1, std::int64_t{p.h.pixels} * p.w.pixels));
    all = p.pixels / std::max<std::int64_t>(1, std::int64_t{p.h.pixels} * p.w.pixels) * rows * columns;
    positions = last + new_rows * reach_w + new_images * reach_h * columns + reach_h * columns + reach_w + 1;
  }

  /// Returns the position of a pixel's window's first row and column in the padded images.
  template <class T>
  __device__ int position(const WindowProduct<T>& p, int pixel) const {
    const int item = p.area.quotient(pixel), inside = p.area.rest(pixel, item);
    const int row = p.width.quotient(inside), column = p.width.rest(inside, row);
    return item * static_cast<int>(area.divisor) + row * static_cast<int>(width.divisor) + column;
  }
  /// Returns how far a tap's position is from that.
  template <class T>
  __device__ int shift(const WindowProduct<T>& p, int i_h, int i_w) const {
    return (i_h * p.h.tap - least_h) * static_cast<int>(width.divisor) + i_w * p.w.tap - least_w;
  }
};

/// A thread's part in copying filters and halos: one chunk of 64 channels.
template <class Tiles>
class HaloLoads {
 public:
  using T = typename Tiles::T;
  using Window = typename Tiles::B;

  __device__ HaloLoads(const WindowProduct<T>& product, const Halo& halo, const TilePlace& place)
      : p_(product), halo_(halo), group_(static_cast<int>(place.batch)) {
    const int row = place.row * Tiles::kM + line();
    rows_left_ = p_.rows - row;
    filters_ = p_.filters + (place.batch * p_.rows + row) * filter_chunks() + across();
    first_ = halo_.position(p_, place.column * Tiles::kN);
    batch_ = p_.area.quotient(p_.pixels);
  }

  __device__ int first() const { return first_; }  ///< position of the tile's first pixel

  /// Starts copying the filters of a tap and slab: (64 filters, 64 channels).
  __device__ void fetch_filters(T* tile, int slab, int i_h, int i_w) const {
    const int tap = (p_.h.filter_first + i_h * p_.h.filter_step) * p_.kernel_w + p_.w.filter_first +
                    i_w * p_.w.filter_step;
    const bool exists = slab * kAcross + across() < chunks();
    const Chunk<T>* filter = filters_ + tap * chunks() + slab * kAcross;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < Tiles::kM / kLinesAtOnce; ++i, filter += kLinesAtOnce * filter_chunks()) {
      ptx::cp_async16(tile + Tiles::A::at(line() + i * kLinesAtOnce, across() * kChunk<T>), filter,
                      exists && i * kLinesAtOnce < rows_left_ ? 16 : 0);
    }
  }

  /// Starts copying a slab of the halo: (halo.positions, 64 channels).
  __device__ void fetch_halo(T* to, int slab) const {
    const int chunk = slab * kAcross + across();
    const bool exists = chunk < chunks();
    to += Window::at(line(), across() * kChunk<T>);  // and all further lines are permuted alike
    const int end = static_cast<int>(halo_.positions);
    for (int i = line(); i < end; i += kLinesAtOnce, to += kLinesAtOnce * Window::kPitch) {
      const int position = first_ + i, item = halo_.area.quotient(position), inside = halo_.area.rest(position, item);
      const int row = halo_.width.quotient(inside), column = halo_.width.rest(inside, row);
      const int h = halo_.low_h + row, w = halo_.low_w + column;
      const bool copied = exists && item < batch_ && static_cast<unsigned>(h) < static_cast<unsigned>(p_.h.length) &&
                          static_cast<unsigned>(w) < static_cast<unsigned>(p_.w.length);
      const int from = (((item * p_.groups + group_) * p_.h.length + h) * p_.w.length + w) * chunks() + chunk;
      ptx::cp_async16(to, p_.image + (copied ? from : 0), copied ? 16 : 0);
    }
  }

 private:
  static constexpr int kAcross = Tiles::kDepth / kChunk<T>, kLinesAtOnce = Tiles::kThreads / kAcross;
  static_assert(Tiles::kM % kLinesAtOnce == 0 && kLinesAtOnce % 8 == 0);

  __device__ static int across() { return static_cast<int>(threadIdx.x) % kAcross; }
  __device__ static int line() { return static_cast<int>(threadIdx.x) / kAcross; }
  __device__ int chunks() const { return static_cast<int>(p_.chunks.divisor); }
  __device__ int filter_chunks() const { return p_.kernel_h * p_.kernel_w * chunks(); }
  const WindowProduct<T>& p_;
  const Halo& halo_;
  const Chunk<T>* filters_;
  int group_, batch_, rows_left_, first_;
};

/// The steps of a WindowProduct: the taps of each slab.
struct HaloStep {
  int slab = 0, i_h = 0, i_w = 0;

  __device__ bool begins_slab() const { return i_h == 0 && i_w == 0; }
  __device__ void next(int taps_h, int taps_w) {
    if (++i_w == taps_w) i_w = 0, ++i_h;
    if (i_h == taps_h) i_h = 0, ++slab;
  }
};

/// The lines of the halo whose addresses a lane gives to ldmatrix.
template <class Tiles>
struct HaloLines {
  static constexpr int kPairs = Fragments<Tiles>::kColumnPairs;
  int lines[kPairs];  ///< of the windows' first row and column

  __device__ HaloLines(const WindowProduct<typename Tiles::T>& p, const Halo& halo, int first_position,
                       int first_pixel) {
    const int lane = ptx::lane_id();
    LEVIN_PRAGMA_UNROLL
    for (int j = 0; j < kPairs; ++j) {
      const int pixel = first_pixel + j * 16 + lane % 8 + lane / 16 * 8;
      lines[j] = pixel < p.pixels ? halo.position(p, pixel) - first_position : 0;
    }
  }

  /// sums += filters windows, for a tap. Calls fetch() while the first fragments arrive.
  template <class T, class F>
  __device__ void multiply(WarpSums<Tiles>& warp, const T* filters, const T* halo, int shift, F&& fetch) const {
    int offsets[kPairs];
    LEVIN_PRAGMA_UNROLL
    for (int j = 0; j < kPairs; ++j) offsets[j] = Tiles::B::at(lines[j] + shift, ptx::lane_id() / 8 % 2 * 8);
    LEVIN_PRAGMA_UNROLL
    for (int s = 0; s < Tiles::kSteps; ++s) {
      Fragments<Tiles> f;
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < f.kRowTiles; ++i) Tiles::A::load_a(f.a[i], filters, warp.row + i * 16, s * 16);
      LEVIN_PRAGMA_UNROLL
      for (int j = 0; j < kPairs; ++j) ptx::ldmatrix_x4(f.b[j], halo + Tiles::B::moved(offsets[j], s));
      if (s == 0) fetch();
      warp.multiply(f);
    }
  }
};

inline constexpr int kHaloStages = 3, kHaloResident = 3;  ///< tiles of filters in flight; blocks on a multiprocessor

/// Computes a tile of a WindowProduct. Shared memory: (stage, 64 filters, 64 channels), then the halo.
template <class Tiles>
__global__ void __launch_bounds__(Tiles::kThreads, kHaloResident)
    conv_halo(WindowProduct<typename Tiles::T> p, Halo halo, WindowOut<typename Tiles::T> out, TileGrid grid) {
  using T = typename Tiles::T;
  T* filters = dynamic_shared<T>();
  T* window = filters + kHaloStages * Tiles::A::kElements;
  const TilePlace place = grid.at(blockIdx.x);
  const HaloLoads<Tiles> loads(p, halo, place);
  const int slabs = p.k == 0 ? 0 : static_cast<int>(ceil_div(p.chunks.divisor, Tiles::kDepth / kChunk<T>));

  HaloStep fetched, step;
  const auto fetch_filters = [&](int stage) {  // an empty group keeps the count when none are left
    if (fetched.slab < slabs) {
      loads.fetch_filters(filters + stage * Tiles::A::kElements, fetched.slab, fetched.i_h, fetched.i_w);
      fetched.next(p.h.taps, p.w.taps);
    }
    ptx::cp_async_commit();
  };
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < kHaloStages - 1; ++i) fetch_filters(i);

  WarpSums<Tiles> warp;
  const HaloLines<Tiles> lines(p, halo, loads.first(), place.column * Tiles::kN + warp.column);
  for (int stage = 0; step.slab < slabs; step.next(p.h.taps, p.w.taps)) {
    if (step.begins_slab()) {
      if (step.slab > 0) __syncthreads();  // all have read the slab before
      loads.fetch_halo(window, step.slab);
      ptx::cp_async_commit();
      ptx::cp_async_wait<0>();
    } else {
      ptx::cp_async_wait<kHaloStages - 2>();
    }
    __syncthreads();  // the copies of all threads have arrived, and all have read the stage before
    const int free = stage == 0 ? kHaloStages - 1 : stage - 1;
    lines.multiply(warp, filters + stage * Tiles::A::kElements, window, halo.shift(p, step.i_h, step.i_w),
                   [&] { fetch_filters(free); });
    stage = stage + 1 == kHaloStages ? 0 : stage + 1;
  }
  warp.write(out, place);
}

/// Computes a WindowProduct by halos where they apply, otherwise by rung 5's tiles.
template <class T>
struct HaloTiles {
  using Tiles = HalfConvTiles<T, Layout::along_k>;
  static constexpr std::int64_t kMostBytes = 100 << 10;  ///< of shared memory, for two blocks per multiprocessor

  static void run(const WindowProduct<T>& product, const WindowOut<T>& out, Stream& stream) {
    constexpr std::int64_t most_positions = 0x7fff0000;
    const Halo halo(product, Tiles::kN);
    const std::int64_t bytes = sizeof(T) * (kHaloStages * Tiles::A::kElements + halo.positions * Tiles::kDepth);
    const bool one_by_one = product.h.step == 1 && product.w.step == 1;
    if (!one_by_one || bytes > kMostBytes || halo.all + halo.positions > most_positions)
      return WindowTiles<T>::run(product, out, stream);
    const TileGrid grid = grid_of<Tiles>(product);
    launch(conv_halo<Tiles>,
           {.grid = static_cast<unsigned>(grid.count()),
            .block = Tiles::kThreads,
            .shared = static_cast<std::size_t>(bytes),
            .stream = stream},
           product, halo, out, grid);
  }
};

}  // namespace levin::kernels::cuda
