// The register tile: MR rows by NV vectors of C are held in registers over the whole of k; each step of k loads NV
// vectors of B, broadcasts MR elements of A, and does MR * NV fused multiply-adds. With 14 x 2 (AVX-512, 32 registers)
// that is 16 loads for 28 multiply-adds, with 6 x 2 (16 registers) 8 for 12: the multipliers, not the loads, are the
// bound.
#include "kernels/cpu/gemm/ops.h"
#include "kernels/cpu/simd-inl.h"

#if defined(LEVIN_KERNELS_CPU_GEMM_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEVIN_KERNELS_CPU_GEMM_TILE_INL_H
#undef LEVIN_KERNELS_CPU_GEMM_TILE_INL_H
#else
#define LEVIN_KERNELS_CPU_GEMM_TILE_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX3
inline constexpr int kTileHeight = 14;
#elif HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
inline constexpr int kTileHeight = 4;
#else
inline constexpr int kTileHeight = 6;
#endif
inline constexpr int kTileVectors = 2;

/// Destination of a tile of C: C = alpha acc + beta C + bias, with the last vector `tail` lanes wide.
template <class T>
struct TileOut {
  T* c;
  int64_t c_rs;
  T alpha, beta;
  const T* bias;  // at the tile's first column, or null
  int64_t tail;
};

/// Stores a tile in the general case, through memory: bias, ragged last vector.
template <class T>
HWY_NOINLINE void store_rows(const T* tile, int64_t rows, int64_t vectors, const TileOut<T>& out) {
  const Simd<T> d;
  constexpr int64_t lanes = kLanes<T>;
  const auto alpha = hn::Set(d, out.alpha), beta = hn::Set(d, out.beta);
  for (int64_t v = 0; v < vectors; ++v) {
    const int64_t count = v + 1 < vectors ? lanes : out.tail;
    const auto bias = out.bias ? load_part(out.bias + v * lanes, count) : hn::Zero(d);
    for (int64_t i = 0; i < rows; ++i) {
      T* c = out.c + i * out.c_rs + v * lanes;
      auto value = hn::MulAdd(alpha, hn::Load(d, tile + (i * vectors + v) * lanes), bias);
      if (out.beta != T(0)) value = hn::MulAdd(beta, load_part(c, count), value);
      store_part(value, c, count);
    }
  }
}

template <int MR, int NV, class T>
HWY_INLINE void store_tile(SimdVec<T> (&acc)[MR][NV], const TileOut<T>& out) {
  const Simd<T> d;
  constexpr int64_t lanes = kLanes<T>;
  if (out.bias || out.tail != lanes) {
    HWY_ALIGN T tile[MR * NV * lanes];
    HWY_UNROLL(16)
    for (int i = 0; i < MR; ++i) {
      HWY_UNROLL(8)
      for (int v = 0; v < NV; ++v) hn::Store(acc[i][v], d, tile + (i * NV + v) * lanes);
    }
    store_rows(tile, MR, NV, out);
    return;
  }
  // All loads come before all stores: with rows a multiple of 4 KiB apart, a load would seem to depend on the store
  // before it, since the processor first compares twelve bits of the addresses.
  const auto alpha = hn::Set(d, out.alpha), beta = hn::Set(d, out.beta);
  const bool update = out.beta != T(0);
  HWY_UNROLL(16)
  for (int i = 0; i < MR; ++i) {
    HWY_UNROLL(8)
    for (int v = 0; v < NV; ++v) acc[i][v] = hn::Mul(alpha, acc[i][v]);
  }
  if (update) {
    HWY_UNROLL(16)
    for (int i = 0; i < MR; ++i) {
      const T* c = out.c + i * out.c_rs;
      HWY_UNROLL(8)
      for (int v = 0; v < NV; ++v) acc[i][v] = hn::MulAdd(beta, hn::LoadU(d, c + v * lanes), acc[i][v]);
    }
  }
  HWY_UNROLL(16)
  for (int i = 0; i < MR; ++i) {
    T* c = out.c + i * out.c_rs;
    HWY_UNROLL(8)
    for (int v = 0; v < NV; ++v) hn::StoreU(acc[i][v], d, c + v * lanes);
  }
}

/// Prefetches the rows of C, which are needed when the loop ends, one row every kStepsPerRow steps of k: the processor
/// has about 16 buffers for lines on their way, and a burst of prefetches keeps the loop's own loads waiting.
template <int MR, int NV, class T>
struct PrefetchC {
  static constexpr int64_t kStepsPerRow = 4;
  const T *first, *last;  // in the first and the last line of the next row
  int64_t c_rs;

  explicit HWY_INLINE PrefetchC(const TileOut<T>& out)
      : first(out.c), last(out.c + (NV - 1) * kLanes<T> + out.tail - 1), c_rs(out.c_rs) {}
  HWY_INLINE void step(int64_t p) {
    if (p % kStepsPerRow != 0 || p >= kStepsPerRow * MR) return;
    hwy::Prefetch(first);
    hwy::Prefetch(last);
    first += c_rs;
    last += c_rs;
  }
};

/// With AVX-512, prefetches the tile's columns of B, 16 steps of k ahead: a packed panel does not fit into L1, and rows
/// in place lie too far apart for the hardware prefetcher. Gradients of weights became 1.15 times as fast on a Xeon.
/// AVX2's panels stay in L1, and prefetching would take the rest of its loop's load slots.
template <int NV, class T>
HWY_INLINE void prefetch_b([[maybe_unused]] const T* b, [[maybe_unused]] int64_t b_step) {
#if HWY_TARGET <= HWY_AVX3
  if constexpr (NV > 1) {  // the last panel may be one vector wide; it takes half the space
    hwy::Prefetch(b + 16 * b_step + kLanes<T> - 1);
    hwy::Prefetch(b + 16 * b_step + 2 * kLanes<T> - 1);
  }
#endif
}

/// Multiplies with A's elements of one k adjacent: a[p * a_step + i].
template <int MR, int NV, class T>
HWY_NOINLINE void gemm_tile(int64_t k, const T* HWY_RESTRICT a, int64_t a_step, const T* HWY_RESTRICT b, int64_t b_step,
                            const TileOut<T>& out) {
  const Simd<T> d;
  SimdVec<T> acc[MR][NV];
  HWY_UNROLL(16)
  for (int i = 0; i < MR; ++i) {
    HWY_UNROLL(8)
    for (int v = 0; v < NV; ++v) acc[i][v] = hn::Zero(d);
  }
  PrefetchC<MR, NV, T> c(out);
  for (int64_t p = 0; p < k; ++p) {
    // A comes from L2 or, in place, from memory, in streams too short for the hardware prefetcher. The line of the
    // first row is also that of the last row of the tile before.
    hwy::Prefetch(a + 32 * a_step + MR - 1);
    prefetch_b<NV>(b, b_step);
    c.step(p);
    SimdVec<T> row[NV];
    HWY_UNROLL(8)
    for (int v = 0; v < NV; ++v) row[v] = hn::LoadU(d, b + v * kLanes<T>);
    HWY_UNROLL(16)
    for (int i = 0; i < MR; ++i) {
      const auto x = hn::Set(d, a[i]);
      HWY_UNROLL(8)
      for (int v = 0; v < NV; ++v) acc[i][v] = hn::MulAdd(x, row[v], acc[i][v]);
    }
    a += a_step;
    b += b_step;
  }
  store_tile<MR, NV>(acc, out);
}

/// Multiplies with A's rows a_step apart and elements along k adjacent: a[i * a_step + p]. This pays off where packing
/// would cost more, for few columns. A is then read once, from memory in the worst case, in more streams than the
/// hardware prefetches well.
template <int MR, int NV, class T>
HWY_NOINLINE void gemm_tile_rows(int64_t k, const T* HWY_RESTRICT a, int64_t a_step, const T* HWY_RESTRICT b,
                                 int64_t b_step, const TileOut<T>& out) {
  const Simd<T> d;
  // Three rows share a pointer, since there are more rows than registers, and a reload costs as much as an operand.
  constexpr int groups = (MR + 2) / 3;
  const T* group[groups];
  SimdVec<T> acc[MR][NV];
  HWY_UNROLL(5)
  for (int i = 0; i < groups; ++i) group[i] = a + 3 * i * a_step;
  HWY_UNROLL(16)
  for (int i = 0; i < MR; ++i) {
    HWY_UNROLL(2)
    for (int v = 0; v < NV; ++v) acc[i][v] = hn::Zero(d);
  }
  constexpr int64_t line = 64 / sizeof(T), ahead = 8 * line;
  PrefetchC<MR, NV, T> c(out);
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t i = p % line; i < MR; i += line) hwy::Prefetch(a + i * a_step + p + ahead);  // each row once in a line
    prefetch_b<NV>(b, b_step);
    c.step(p);
    SimdVec<T> row[NV];
    HWY_UNROLL(2)
    for (int v = 0; v < NV; ++v) row[v] = hn::LoadU(d, b + v * kLanes<T>);
    HWY_UNROLL(16)
    for (int i = 0; i < MR; ++i) {
      const auto x = hn::Set(d, group[i / 3][i % 3 * a_step]);
      HWY_UNROLL(2)
      for (int v = 0; v < NV; ++v) acc[i][v] = hn::MulAdd(x, row[v], acc[i][v]);
    }
    HWY_UNROLL(5)
    for (int i = 0; i < groups; ++i) ++group[i];
    b += b_step;
  }
  store_tile<MR, NV>(acc, out);
}

template <class T>
using TileFn = void (*)(int64_t, const T*, int64_t, const T*, int64_t, const TileOut<T>&);

template <class T, int NV, int... I>
TileFn<T> tile_of(int64_t height, bool by_row, std::integer_sequence<int, I...>) {
  static constexpr TileFn<T> packed[] = {&gemm_tile<I + 1, NV, T>...};
  static constexpr TileFn<T> rows[] = {&gemm_tile_rows<I + 1, NV, T>...};
  return (by_row ? rows : packed)[height - 1];
}

/// Returns the tile function of `height` rows (at most kTileHeight) and `vectors` (1 or 2) vectors.
template <class T>
TileFn<T> tile_function(int64_t height, int64_t vectors, bool by_row) {
  constexpr auto heights = std::make_integer_sequence<int, kTileHeight>{};
  return vectors == 1 ? tile_of<T, 1>(height, by_row, heights) : tile_of<T, 2>(height, by_row, heights);
}

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
