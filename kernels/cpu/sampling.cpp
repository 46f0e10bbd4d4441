// Bilinear sampling of images.

#include "dispatch.h"
#include "kernels/src/bilinear.h"
#include "kernels/src/table.h"

#include <levin/core/parallel.h>
#include <levin/kernels/indexing.h>

#include <algorithm>
#include <type_traits>

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

/// The corners of a tile of points: first those of points whose four pixels are in the image, then the others.
template <class T>
struct Tile {
  Corners<T> corners[kPointTile];
  int64_t point[kPointTile];
  int64_t count, inside = 0;

  Tile(const Sampling& s, const TensorView& row, const TensorView& column, int64_t at, int64_t points) : count(points) {
    int64_t outside = points;
    for (int64_t p = 0; p < points; ++p) {
      const Corners<T> q(row.data<T>()[at + p], column.data<T>()[at + p], s.h, s.w);
      const bool all = q.place[0] >= 0 && q.place[3] >= 0;
      const int64_t to = all ? inside++ : --outside;
      corners[to] = q;
      point[to] = p;
    }
  }

  /// Calls f(point, corners, whether all pixels are in the image) for each point, with a constant as the last one.
  template <class F>
  void each(F&& f) const {
    for (int64_t i = 0; i < inside; ++i) f(point[i], corners[i], std::true_type());
    for (int64_t i = inside; i < count; ++i) f(point[i], corners[i], std::false_type());
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
      const auto read = [image](int64_t place) { return image[place]; };
      tile.each([&]<bool whole>(int64_t p, const Corners<T>& q, std::bool_constant<whole>) {
        out[p] = q.template value<whole>(read);
      });
    }
  });
}

void bilinear(const BilinearArgs& a, Stream&) {
  if (a.out.numel() == 0) return;
  dispatch_wide(a.out.dtype, "bilinear", [&]<class T>() { sample<T>(a); });
}

/// Each task adds the gradients of all points, tile by tile, to some channels of an image.
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
          tile.each([&]<bool whole>(int64_t p, const Corners<T>& q, std::bool_constant<whole>) {
            for (int k = 0; k < 4; ++k)
              if (whole || q.place[k] >= 0) image[q.place[k]] += g[p] * q.weight(k);
          });
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
      tile.each([&]<bool whole>(int64_t p, const Corners<T>& q, std::bool_constant<whole>) {
        const auto pixel = [&](int k) { return q.template pixel<whole>(k, read); };
        const T x0 = pixel(0), x1 = pixel(1), x2 = pixel(2), x3 = pixel(3);
        down[p] += g[p] * ((x2 - x0) * (T(1) - q.right) + (x3 - x1) * q.right);
        right[p] += g[p] * ((x1 - x0) * (T(1) - q.down) + (x3 - x2) * q.down);
      });
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
