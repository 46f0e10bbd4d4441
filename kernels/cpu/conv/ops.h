#pragma once
// The interface between an instruction set and the convolution drivers.

#include <cstdint>

namespace levin::kernels::cpu {

using std::int64_t;

/// Maximum tile height over all instruction sets.
inline constexpr int64_t kMostTileHeight = 16;

/// One or two rows of output pixels for one panel of output channels (one or two vectors of them).
template <class T>
struct DirectRow {
  const T* source;         // padded input, at the first pixel
  const int64_t* offsets;  // (taps): offset of a tap's input from its pixel; neighbouring pixels are adjacent
  const T* weights;        // (taps, panel)
  int64_t taps, pixels, rows;
  int64_t source_step;             // distance between the two rows in source
  T* out;                          // (rows, pixels, panel)
  int64_t out_step, out_row_step;  // distances between neighbouring pixels and between the two rows in out
  int64_t vectors;                 // panel width in vectors
};

/// The weight gradients of up to max_height taps for one panel of output channels over a few images.
template <class T>
struct WeightTile {
  const T* const* sources;  // (height): each tap's padded input at the first output pixel
  int64_t height, images, rows, columns;
  int64_t image_step, row_step;  // distances in the padded input
  const T* gradient;             // (images, rows, columns, panel)
  T* sum;                        // (height, panel)
  bool add;                      // adds to sum instead of overwriting it
  int64_t vectors;
};

/// Moves pixels with adjacent channels to planes: plane[c * plane_step + i] = pixels[i * panel + c] + bias[c].
template <class T>
struct Planes {
  const T* pixels;
  int64_t count, channels, panel;
  const T* bias;  // (channels) or null
  T* planes;
  int64_t plane_step;
};

/// A plane whose lanes are neighbouring pixels, for one source channel or a few: out[r, c] = bias + sum over taps t of
/// weights[t] * source[offsets[t] + r * source_step + c].
template <class T>
struct PlaneResult {
  const T* source;
  const int64_t* offsets;
  const T* weights;
  int64_t taps, rows, columns, source_step;
  T bias;
  T* out;
  int64_t out_step;  // distance between rows
};

/// Overwrites sum[t] with the sum over r, c of gradient[r, c] * source[offsets[t] + r * source_step + c].
template <class T>
struct PlaneWeights {
  const T* source;
  const int64_t* offsets;
  int64_t taps, rows, columns, source_step;
  const T* gradient;  // (rows, columns)
  T* sum;
};

/// One row phase of a padded plane: out (phases, lines, extent), zero but for first <= line < last, where element c of
/// phase p is element c * phases + p + origin of source line (line - first), if that is in [0, size).
template <class T>
struct PadLines {
  const T* source;
  int64_t phases, row_step, size, origin, extent;
  int64_t first, last, lines;
  T* out;
};

template <class T>
struct ConvOps {
  int lanes, max_height;  // two rows are computed together if their pixels fit max_height
  void (*row)(const DirectRow<T>&);
  void (*weight_tile)(const WeightTile<T>&);
  void (*to_planes)(const Planes<T>&);
  /// Computes sum[i] += term[i].
  void (*add)(T* sum, const T* term, int64_t count);
  void (*plane)(const PlaneResult<T>&);
  void (*plane_weights)(const PlaneWeights<T>&);
  void (*pad)(const PadLines<T>&);
};

/// A run of tiles for one panel of channels. In the domain of the transform an element of a tile is one of 36 points
/// with three or five taps a direction, or one of 25 with two.
template <class T>
struct WinogradTiles {
  T* pixels;                        // (tiles, rows, columns, channels)
  int64_t pixels_step;              // distance between tiles
  const int64_t* offsets;           // (rows, columns): of a tile's pixels from its first
  T* points;                        // (points, tiles, channels)
  int64_t point_step, points_step;  // distances between points and between tiles
  int64_t tiles, channels;          // channels are whole vectors
};

/// The transforms of Winograd's convolution. Those to pixels return whether all results are finite.
template <class T>
struct WinogradOps {
  void (*input)(const WinogradTiles<T>&);
  void (*weight)(const WinogradTiles<T>&);
  void (*gradient)(const WinogradTiles<T>&);
  bool (*output)(const WinogradTiles<T>&);
  bool (*weight_gradient)(const WinogradTiles<T>&);
};

template <class T>
const ConvOps<T>& conv_ops();
template <>
const ConvOps<float>& conv_ops<float>();
template <>
const ConvOps<double>& conv_ops<double>();
/// The transforms for kernels of taps x taps: tiles of 4 x 4 results with 2 or 3, of 2 x 2 with 5.
const WinogradOps<float>& winograd_ops(int64_t taps);

}  // namespace levin::kernels::cpu
