// Register tiles of the direct convolution: output channels are the lanes, so any image width fills the vectors.
#include "kernels/cpu/conv/ops.h"
#include "kernels/cpu/gemm/tile-inl.h"

#if defined(LEVIN_KERNELS_CPU_CONV_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVIN_KERNELS_CPU_CONV_TILE_INL_H
#undef LEVIN_KERNELS_CPU_CONV_TILE_INL_H
#else
#define LEVIN_KERNELS_CPU_CONV_TILE_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

/// Computes R rows of MR neighbouring pixels by NV vectors of channels; a step is a tap, whose inputs for the MR pixels
/// are adjacent. Two rows keep the multipliers busy on narrow images.
template <int R, int MR, int NV, class T>
HWY_NOINLINE void direct_tile(const T* HWY_RESTRICT source, const DirectRow<T>& row, T* out) {
  const Simd<T> d;
  SimdVec<T> acc[R * MR][NV];
  HWY_UNROLL(16)
  for (int i = 0; i < R * MR; ++i) {
    HWY_UNROLL(2)
    for (int v = 0; v < NV; ++v) acc[i][v] = hn::Zero(d);
  }
  const T* HWY_RESTRICT w = row.weights;
  const int64_t* offset = row.offsets;
  for (const int64_t* end = offset + row.taps; offset != end; ++offset) {
    const T* HWY_RESTRICT x = source + *offset;
    SimdVec<T> weight[NV];
    HWY_UNROLL(2)
    for (int v = 0; v < NV; ++v) weight[v] = hn::LoadU(d, w + v * kLanes<T>);
    HWY_UNROLL(16)
    for (int i = 0; i < R * MR; ++i) {
      const auto pixel = hn::Set(d, i < MR ? x[i % MR] : x[row.source_step + i % MR]);
      HWY_UNROLL(2)
      for (int v = 0; v < NV; ++v) acc[i][v] = hn::MulAdd(pixel, weight[v], acc[i][v]);
    }
    w += NV * kLanes<T>;
  }
  HWY_UNROLL(16)
  for (int i = 0; i < R * MR; ++i) {
    T* to = out + (i / MR) * row.out_row_step + (i % MR) * row.out_step;
    HWY_UNROLL(2)
    for (int v = 0; v < NV; ++v) hn::StoreU(acc[i][v], d, to + v * kLanes<T>);
  }
}

/// Computes MR taps by NV vectors of channels; a step is an output pixel.
template <int MR, int NV, class T>
HWY_NOINLINE void weight_tile(const WeightTile<T>& g) {
  const Simd<T> d;
  SimdVec<T> acc[MR][NV];
  const T* sources[MR];
  HWY_UNROLL(16)
  for (int i = 0; i < MR; ++i) {
    sources[i] = g.sources[i];
    HWY_UNROLL(2)
    for (int v = 0; v < NV; ++v) acc[i][v] = hn::Zero(d);
  }
  const T* HWY_RESTRICT gradient = g.gradient;
  int64_t begin = -g.row_step;
  for (int64_t line = 0; line < g.images * g.rows; ++line) {
    begin = line % g.rows == 0 ? line / g.rows * g.image_step : begin + g.row_step;
    for (int64_t q = begin; q < begin + g.columns; ++q) {
      SimdVec<T> dy[NV];
      HWY_UNROLL(2)
      for (int v = 0; v < NV; ++v) dy[v] = hn::LoadU(d, gradient + v * kLanes<T>);
      HWY_UNROLL(16)
      for (int i = 0; i < MR; ++i) {
        const auto x = hn::Set(d, sources[i][q]);
        HWY_UNROLL(2)
        for (int v = 0; v < NV; ++v) acc[i][v] = hn::MulAdd(x, dy[v], acc[i][v]);
      }
      gradient += NV * kLanes<T>;
    }
  }
  HWY_UNROLL(16)
  for (int i = 0; i < MR; ++i) {
    HWY_UNROLL(2)
    for (int v = 0; v < NV; ++v) {
      T* sum = g.sum + (i * NV + v) * kLanes<T>;
      hn::StoreU(g.add ? hn::Add(hn::LoadU(d, sum), acc[i][v]) : acc[i][v], d, sum);
    }
  }
}

template <class T>
using DirectFn = void (*)(const T*, const DirectRow<T>&, T*);
template <class T>
using WeightFn = void (*)(const WeightTile<T>&);

template <class T, int R, int NV, int... I>
DirectFn<T> direct_of(int64_t height, std::integer_sequence<int, I...>) {
  static constexpr DirectFn<T> table[] = {&direct_tile<R, I + 1, NV, T>...};
  return table[height - 1];
}

template <class T, int NV, int... I>
WeightFn<T> weight_of(int64_t height, std::integer_sequence<int, I...>) {
  static constexpr WeightFn<T> table[] = {&weight_tile<I + 1, NV, T>...};
  return table[height - 1];
}

template <class T>
void run_row(const DirectRow<T>& row) {
  constexpr auto heights = std::make_integer_sequence<int, kTileHeight>{};
  constexpr auto halves = std::make_integer_sequence<int, kTileHeight / 2>{};
  if (row.rows == 2) {
    const bool narrow = row.vectors == 1;
    const auto tile = narrow ? direct_of<T, 2, 1>(row.pixels, halves) : direct_of<T, 2, 2>(row.pixels, halves);
    tile(row.source, row, row.out);
    return;
  }
  const RowBlocks blocks(row.pixels, kTileHeight);
  for (int64_t b = 0; b < blocks.count; ++b) {
    const int64_t start = blocks.start(b), size = blocks.size(b);
    const auto tile = row.vectors == 1 ? direct_of<T, 1, 1>(size, heights) : direct_of<T, 1, 2>(size, heights);
    tile(row.source + start, row, row.out + start * row.out_step);
  }
}

template <class T>
void run_weight_tile(const WeightTile<T>& g) {
  constexpr auto heights = std::make_integer_sequence<int, kTileHeight>{};
  (g.vectors == 1 ? weight_of<T, 1>(g.height, heights) : weight_of<T, 2>(g.height, heights))(g);
}

template <class T>
void to_planes(const Planes<T>& g) {
  const Simd<T> d;
  constexpr int64_t lanes = kLanes<T>, block = kBlockLanes<T>;
  for (int64_t i = 0; i < g.count; i += lanes) {
    const int64_t valid = g.count - i < lanes ? g.count - i : lanes;
    const T* rows[lanes];
    for (int64_t r = 0; r < lanes; ++r) rows[r] = g.pixels + (i + (r < valid ? r : 0)) * g.panel;
    for (int64_t c = 0; c < g.channels; c += block) {  // the panel is whole blocks, so reading past `channels` is safe
      SimdVec<T> out[block];
      transpose_piece(rows, c, out);
      for (int64_t k = 0; k < block && c + k < g.channels; ++k) {
        T* to = g.planes + (c + k) * g.plane_step + i;
        if (g.bias) out[k] = hn::Add(out[k], hn::Set(d, g.bias[c + k]));
        if (valid == lanes) {
          hn::StoreU(out[k], d, to);
        } else {
          store_part(out[k], to, valid);
        }
      }
    }
  }
}

template <class T>
void add_to(T* sum, const T* term, int64_t count) {
  const Simd<T> d;
  int64_t i = 0;
  for (; i + kLanes<T> <= count; i += kLanes<T>) {
    hn::StoreU(hn::Add(hn::LoadU(d, sum + i), hn::LoadU(d, term + i)), d, sum + i);
  }
  for (; i < count; ++i) sum[i] += term[i];
}

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
