// Bilinear sampling of images.

#include "dispatch.h"
#include "kernels/src/bilinear.h"
#include "kernels/src/table.h"

#include <levin/core/parallel.h>
#include <levin/kernels/indexing.h>

#include <algorithm>

namespace levin::kernels {

namespace cpu {

namespace {

using sampling::Corners;

constexpr int64_t kPointGrain = 16384;  // elements of a task
constexpr int64_t kPointTile = 128;     // points whose corners are computed together, for several channels
constexpr int64_t kChannelBlock = 8;

/// Sizes of the arguments.
struct Sampling {
  int64_t batch, channels, h, w, points;

  Sampling(const TensorView& x, const TensorView& row)
      : batch(x.sizes[0]), channels(x.sizes[1]), h(x.sizes[2]), w(x.sizes[3]), points(row.sizes[1]) {}

  /// Calls f(image of the batch, first point, count) for tiles of points, in parallel.
  template <class F>
  void for_tiles(F&& f) const {
    const int64_t tiles = (points + kPointTile - 1) / kPointTile;
    const int64_t work = std::max<int64_t>(1, channels * std::min(points, kPointTile));
    parallel_for(0, batch * tiles, std::max<int64_t>(1, kPointGrain / work), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t first = task % tiles * kPointTile;
        f(task / tiles, first, std::min(kPointTile, points - first));
      }
    });
  }
};

/// The corners of a tile of points.
template <class T>
struct Tile {
  Corners<T> corners[kPointTile];

  Tile(const Sampling& s, const TensorView& row, const TensorView& column, int64_t at, int64_t count) {
    for (int64_t p = 0; p < count; ++p)
      corners[p] = Corners<T>(row.data<T>()[at + p], column.data<T>()[at + p], s.h, s.w);
  }
};

template <class T>
void sample(const BilinearArgs& a) {
  const Sampling s(a.x, a.row);
  s.for_tiles([&](int64_t b, int64_t first, int64_t count) {
    const Tile<T> tile(s, a.row, a.column, b * s.points + first, count);
    for (int64_t c = b * s.channels; c < (b + 1) * s.channels; ++c) {
      const T* const image = a.x.data<T>() + c * s.h * s.w;
      T* const out = a.out.data<T>() + c * s.points + first;
      for (int64_t p = 0; p < count; ++p)
        out[p] = tile.corners[p].value([image](int64_t place) { return image[place]; });
    }
  });
}

void bilinear(const BilinearArgs& a, Stream&) {
  if (a.out.numel() == 0) return;
  dispatch_wide(a.out.dtype, "bilinear", [&]<class T>() { sample<T>(a); });
}

/// Each task adds the gradients of all points, in their order, to some channels of an image.
template <class T>
void image_gradient(const BilinearBackwardArgs& a, const Sampling& s) {
  const int64_t blocks = (s.channels + kChannelBlock - 1) / kChannelBlock;
  const int64_t work = std::max<int64_t>(1, s.points * std::min(s.channels, kChannelBlock));
  parallel_for(0, s.batch * blocks, std::max<int64_t>(1, kPointGrain / work), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t b = task / blocks, channel = task % blocks * kChannelBlock;
      const int64_t count = std::min(kChannelBlock, s.channels - channel), plane = b * s.channels + channel;
      T* const dx = a.dx.data<T>() + plane * s.h * s.w;
      std::fill_n(dx, count * s.h * s.w, T(0));
      for (int64_t first = 0; first < s.points; first += kPointTile) {
        const int64_t points = std::min(kPointTile, s.points - first);
        const Tile<T> tile(s, a.row, a.column, b * s.points + first, points);
        for (int64_t c = 0; c < count; ++c) {
          const T* const g = a.g.data<T>() + (plane + c) * s.points + first;
          T* const image = dx + c * s.h * s.w;
          for (int64_t p = 0; p < points; ++p)
            for (int k = 0; k < 4; ++k)
              if (const int64_t place = tile.corners[p].place[k]; place >= 0)
                image[place] += g[p] * tile.corners[p].weight(k);
        }
      }
    }
  });
}

template <class T>
void position_gradients(const BilinearBackwardArgs& a, const Sampling& s) {
  s.for_tiles([&](int64_t b, int64_t first, int64_t count) {
    const int64_t at = b * s.points + first;
    const Tile<T> tile(s, a.row, a.column, at, count);
    T *const down = a.drow.data<T>() + at, *const right = a.dcolumn.data<T>() + at;
    std::fill_n(down, count, T(0));
    std::fill_n(right, count, T(0));
    for (int64_t c = b * s.channels; c < (b + 1) * s.channels; ++c) {
      const T *const image = a.x.data<T>() + c * s.h * s.w, *const g = a.g.data<T>() + c * s.points + first;
      const auto read = [image](int64_t place) { return image[place]; };
      for (int64_t p = 0; p < count; ++p) {
        const Corners<T>& q = tile.corners[p];
        const T x0 = q.pixel(0, read), x1 = q.pixel(1, read), x2 = q.pixel(2, read), x3 = q.pixel(3, read);
        down[p] += g[p] * ((x2 - x0) * (T(1) - q.right) + (x3 - x1) * q.right);
        right[p] += g[p] * ((x1 - x0) * (T(1) - q.down) + (x3 - x2) * q.down);
      }
    }
  });
}

void bilinear_backward(const BilinearBackwardArgs& a, Stream&) {
  dispatch_wide(a.g.dtype, "bilinear_backward", [&]<class T>() {
    const Sampling s(a.x, a.row);
    image_gradient<T>(a, s);
    position_gradients<T>(a, s);
  });
}

}  // namespace

}  // namespace cpu

LEVIN_KERNEL_OF(BilinearArgs, bilinear, cpu::bilinear, kNot16BitFloats);
LEVIN_HOST_ONLY(BilinearBackwardArgs, bilinear_backward, cpu::bilinear_backward,
                "on CUDA the gradient is composed, because sums in a fixed order need a sort");

}  // namespace levin::kernels
