// The tile of int8 products with AVX512-VNNI, which multiplies 64 unsigned bytes by signed ones and sums them by fours
// into int32, without saturation. Highway 1.0 has no function for it.
#include "kernels/cpu/quantized/products.h"
#include "kernels/cpu/targets.h"

#include <hwy/targets.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace levin::kernels::cpu {

#if defined(__x86_64__)

namespace {

#define LEVIN_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

/// Returns the sums of four vectors of 16 as four lanes. The functions with a mask, here of all lanes, are those that
/// g++ 12 compiles without a false warning.
LEVIN_VNNI inline __m128i sum_lanes(__m512i a, __m512i b, __m512i c, __m512i d) {
  constexpr __mmask16 all = 0xffff;
  constexpr __mmask8 all8 = 0xff;
  const __m512i ab =
      _mm512_add_epi32(_mm512_maskz_unpacklo_epi32(all, a, b), _mm512_maskz_unpackhi_epi32(all, a, b));
  const __m512i cd =
      _mm512_add_epi32(_mm512_maskz_unpacklo_epi32(all, c, d), _mm512_maskz_unpackhi_epi32(all, c, d));
  const __m512i abcd =
      _mm512_add_epi32(_mm512_maskz_unpacklo_epi64(all8, ab, cd), _mm512_maskz_unpackhi_epi64(all8, ab, cd));
  alignas(64) __m128i blocks[4];
  _mm512_store_si512(blocks, abcd);
  return _mm_add_epi32(_mm_add_epi32(blocks[0], blocks[1]), _mm_add_epi32(blocks[2], blocks[3]));
}

template <int R, bool RowsUnsigned>
LEVIN_VNNI void tile_of_bytes(const Int8Tile& t, std::int32_t* sums) {
  __m512i sum[R][4], row[R];
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < 4; ++j) sum[i][j] = _mm512_setzero_si512();
  for (int64_t p = 0; p < t.k; p += 64) {
    const __mmask64 within = t.k - p >= 64 ? ~__mmask64{0} : (__mmask64{1} << (t.k - p)) - 1;
    for (int i = 0; i < R; ++i) row[i] = _mm512_maskz_loadu_epi8(within, static_cast<const char*>(t.rows[i]) + p);
    for (int j = 0; j < 4; ++j) {
      const __m512i column = _mm512_maskz_loadu_epi8(within, static_cast<const char*>(t.columns[j]) + p);
      for (int i = 0; i < R; ++i)
        sum[i][j] = RowsUnsigned ? _mm512_dpbusd_epi32(sum[i][j], row[i], column)
                                 : _mm512_dpbusd_epi32(sum[i][j], column, row[i]);
    }
  }
  for (int i = 0; i < R; ++i)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(sums + i * 4),
                     sum_lanes(sum[i][0], sum[i][1], sum[i][2], sum[i][3]));
}

template <bool RowsUnsigned>
void tile_of_rows(const Int8Tile& t, int count, std::int32_t* sums) {
  switch (count) {
    case 1: return tile_of_bytes<1, RowsUnsigned>(t, sums);
    case 2: return tile_of_bytes<2, RowsUnsigned>(t, sums);
    case 3: return tile_of_bytes<3, RowsUnsigned>(t, sums);
    default: return tile_of_bytes<4, RowsUnsigned>(t, sums);
  }
}

void tile_with_vnni(const Int8Tile& t, int count, bool rows_unsigned, std::int32_t* sums) {
  rows_unsigned ? tile_of_rows<true>(t, count, sums) : tile_of_rows<false>(t, count, sums);
}

}  // namespace

Int8TileFn vnni_tile() {
  return (hwy::SupportedTargets() & HWY_AVX3) && __builtin_cpu_supports("avx512vnni") ? &tile_with_vnni : nullptr;
}

#else

Int8TileFn vnni_tile() { return nullptr; }

#endif

}  // namespace levin::kernels::cpu
