#pragma once
// The interface of an instruction set to the convolution drivers.

#include <cstdint>

namespace levin::kernels::cpu {

using std::int64_t;

/// No instruction set's tile is higher.
inline constexpr int64_t kMostTileHeight = 16;

/// One row, or two, of output pixels for one panel of output channels (one or two vectors of them).
template <class T>
struct DirectRow {
  const T* source;         // padded input, at the first pixel
  const int64_t* offsets;  // (taps): where a tap's input lies from its pixel; neighbouring pixels are neighbours
  const T* weights;        // (taps, panel)
  int64_t taps, pixels, rows;
  int64_t source_step;             // distance of the two rows in source
  T* out;                          // (rows, pixels, panel)
  int64_t out_step, out_row_step;  // distance of neighbouring pixels and of the two rows in out
  int64_t vectors;                 // panel width in vectors
};

/// The gradients of up to max_height taps' weights for one panel of output channels over a few images.
template <class T>
struct WeightTile {
  const T* const* sources;  // (height): each tap's padded input at the first output pixel
  int64_t height, images, rows, columns;
  int64_t image_step, row_step;  // distances in the padded input
  const T* gradient;             // (images, rows, columns, panel)
  T* sum;                        // (height, panel)
  bool add;                      // add to sum, or overwrite
  int64_t vectors;
};

/// Pixels with channels as neighbours to planes: plane[c * plane_step + i] = pixels[i * panel + c] + bias[c].
template <class T>
struct Planes {
  const T* pixels;
  int64_t count, channels, panel;
  const T* bias;  // (channels) or null
  T* planes;
  int64_t plane_step;
};

template <class T>
struct ConvOps {
  int lanes, max_height;  // two rows are taken when their pixels together fit max_height
  void (*row)(const DirectRow<T>&);
  void (*weight_tile)(const WeightTile<T>&);
  void (*to_planes)(const Planes<T>&);
  /// sum[i] += term[i]
  void (*add)(T* sum, const T* term, int64_t count);
};

template <class T>
const ConvOps<T>& conv_ops();
template <>
const ConvOps<float>& conv_ops<float>();
template <>
const ConvOps<double>& conv_ops<double>();

}  // namespace levin::kernels::cpu
