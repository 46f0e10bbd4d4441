#pragma once
// The epilogue of convolutions: the columns of a product are pixels of images.

#include "kernels/cuda/conv/windows.cuh"
#include "kernels/cuda/matmul/tiles.cuh"

namespace levin::kernels::cuda {

/// Returns the tiles of a product of filters and windows; blocks that run together share the filters.
template <class Tiles, class Product>
TileGrid grid_of(const Product& p) {
  TileGrid grid = tile_grid(p.rows, p.pixels, 0, p.groups, Tiles::kM, Tiles::kN, Tiles::kDepth);
  grid.group = 8;
  return grid;
}

/// Stores the columns of a product, which are the pixels of two WindowAxis of a batch of images, to y (batch, groups *
/// rows, height, width), with one bias per channel.
template <class T>
struct WindowOut {
  T* data;
  const T* bias;  ///< (groups * rows); may be null
  int rows, columns, channels, image_width;
  std::int64_t plane;
  int h_first, h_step, w_first, w_step;
  FastDivide area, width;
  int neighbours = 1;  ///< number of columns, the first one a multiple of it, that one store may write

  WindowOut(T* to, const T* channel_bias, int rows_of_a_group, int groups, int batch, const WindowAxis& h,
            const WindowAxis& w, int height, int row_length)
      : data(to),
        bias(channel_bias),
        rows(rows_of_a_group),
        columns(batch * h.pixels * w.pixels),
        channels(groups * rows_of_a_group),
        image_width(row_length),
        plane(std::int64_t{height} * row_length),
        h_first(h.out_first),
        h_step(h.out_step),
        w_first(w.out_first),
        w_step(w.out_step),
        area(std::int64_t{h.pixels} * w.pixels),
        width(w.pixels) {
    if (h_step != 1 || w_step != 1) return;  // otherwise the pixels are all those of the images, in order
    const auto aligned_to = [address = reinterpret_cast<std::uintptr_t>(to)](int elements) {
      return address % (static_cast<std::size_t>(elements) * sizeof(T)) == 0;
    };
    while (neighbours < 4 && plane % (2 * neighbours) == 0 && aligned_to(2 * neighbours)) neighbours *= 2;
  }

  /// Returns the place of a column in the first of its image's channels.
  __device__ std::int64_t place_of(int column) const {
    const int item = area.quotient(column);
    int inside = area.rest(column, item);
    if (h_step != 1 || w_step != 1) {
      const int h = width.quotient(inside), w = width.rest(inside, h);
      inside = (h_first + h * h_step) * image_width + w_first + w * w_step;
    }
    return static_cast<std::int64_t>(item) * channels * plane + inside;
  }

  template <int N>
  struct Columns {
    const WindowOut& out;
    int group, left;     ///< number of columns that exist, at most N
    std::int64_t at[N];  ///< only the first one, if one store writes all

    __device__ Columns(const WindowOut& of, const TilePlace& place, int column)
        : out(of), group(static_cast<int>(place.batch)) {
      left = out.columns - column < N ? out.columns - column : N;
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < N; ++i) {
        if (i == 0 || N > out.neighbours) at[i] = out.place_of(column + i);
      }
    }
    __device__ void write(int row, const float (&sums)[N]) const {
      if (row >= out.rows || left <= 0) return;
      const int channel = group * out.rows + row;
      const float shift = out.bias ? convert<float>(out.bias[channel]) : 0;
      T* to = out.data + channel * out.plane;
      if (N <= out.neighbours) {
        Pack<T, N> values;
        LEVIN_PRAGMA_UNROLL
        for (int i = 0; i < N; ++i) values[i] = convert<T>(sums[i] + shift);
        pack_at<N>(to + at[0]) = values;
        return;
      }
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < N; ++i) {
        if (i < left) to[at[i]] = convert<T>(sums[i] + shift);
      }
    }
  };
};

}  // namespace levin::kernels::cuda
