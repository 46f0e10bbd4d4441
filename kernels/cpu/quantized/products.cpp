// Tiles of int8 products, compiled for each target and chosen at run time. Both operands lie along k, as a layer stores
// its weight and a caller its rows, so nothing is packed: a product with one row reads the weight once, and that is its
// bound. Bytes are widened to int16, whose products are summed in pairs in int32 without overflow; the instruction for
// unsigned times signed bytes before AVX512-VNNI would saturate.
#include "kernels/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/quantized/products.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/quantized/products.h"
#include "kernels/cpu/simd-inl.h"

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {

template <class T>
using Narrow = hn::Rebind<T, Simd<std::int32_t>>;  // as many T as a vector has int32
using Bytes16 = hn::Repartition<std::int16_t, Simd<std::int32_t>>;

/// Loads `count` bytes, at most a vector's, and zeros; reads nothing else.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_bytes(D d, const T* p, int64_t count) {
  HWY_ALIGN T lanes[hn::MaxLanes(D{})] = {};
  std::memcpy(lanes, p, static_cast<std::size_t>(count) * sizeof(T));
  return hn::Load(d, lanes);
}

/// Returns the sums of four vectors as four adjacent lanes.
template <class T>
HWY_INLINE void sum_four(SimdVec<T> a, SimdVec<T> b, SimdVec<T> c, SimdVec<T> e, T* sums) {
  const Simd<T> d;
#if HWY_TARGET == HWY_SCALAR
  sums[0] = hn::GetLane(a), sums[1] = hn::GetLane(b), sums[2] = hn::GetLane(c), sums[3] = hn::GetLane(e);
#else
  const hn::Repartition<std::uint64_t, Simd<T>> pairs;
  const auto ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));  // a0+a2 b0+b2 a1+a3 b1+b3
  const auto ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto low = hn::InterleaveLower(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, ce));
  const auto high = hn::InterleaveUpper(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, ce));
  HWY_ALIGN T blocks[kLanes<T>];
  hn::Store(hn::Add(hn::BitCast(d, low), hn::BitCast(d, high)), d, blocks);
  const hn::FixedTag<T, 4> four;
  auto sum = hn::Load(four, blocks);
  for (int64_t i = 4; i < kLanes<T>; i += 4) sum = hn::Add(sum, hn::Load(four, blocks + i));
  hn::StoreU(sum, four, sums);
#endif
}

template <int R, class Row, class Column>
HWY_INLINE void add_products(Bytes16 d, const hn::Vec<Row>* rows, const hn::Vec<Column>* columns,
                             SimdVec<std::int32_t> (&sum)[R][4], SimdVec<std::int32_t> (&other)[R][4]) {
  const Simd<std::int32_t> sums;
  hn::Vec<Bytes16> wide[R];
  HWY_UNROLL(4)
  for (int i = 0; i < R; ++i) wide[i] = hn::PromoteTo(d, rows[i]);
  HWY_UNROLL(4)
  for (int j = 0; j < 4; ++j) {
    const auto column = hn::PromoteTo(d, columns[j]);
    HWY_UNROLL(4)
    for (int i = 0; i < R; ++i)
      sum[i][j] = hn::ReorderWidenMulAccumulate(sums, wide[i], column, sum[i][j], other[i][j]);
  }
}

template <int R, class RowT, class ColumnT>
HWY_NOINLINE void tile_of(const Int8Tile& t, std::int32_t* sums) {
  const Bytes16 d;
  const Simd<std::int32_t> d32;
  using Row = hn::Rebind<RowT, Bytes16>;
  using Column = hn::Rebind<ColumnT, Bytes16>;
  constexpr auto step = static_cast<int64_t>(hn::MaxLanes(Bytes16{}));
  const RowT* row[R];
  const ColumnT* column[4];
  SimdVec<std::int32_t> sum[R][4], other[R][4];  // some targets keep the sums of odd products apart
  for (int i = 0; i < R; ++i) {
    row[i] = static_cast<const RowT*>(t.rows[i]);
    for (int j = 0; j < 4; ++j) sum[i][j] = other[i][j] = hn::Zero(d32);
  }
  for (int j = 0; j < 4; ++j) column[j] = static_cast<const ColumnT*>(t.columns[j]);
  hn::Vec<Row> rows[R];
  hn::Vec<Column> columns[4];
  int64_t p = 0;
  for (; p + step <= t.k; p += step) {
    HWY_UNROLL(4)
    for (int i = 0; i < R; ++i) rows[i] = hn::LoadU(Row(), row[i] + p);
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) columns[j] = hn::LoadU(Column(), column[j] + p);
    add_products<R, Row, Column>(d, rows, columns, sum, other);
  }
  if (p < t.k) {
    for (int i = 0; i < R; ++i) rows[i] = load_bytes(Row(), row[i] + p, t.k - p);
    for (int j = 0; j < 4; ++j) columns[j] = load_bytes(Column(), column[j] + p, t.k - p);
    add_products<R, Row, Column>(d, rows, columns, sum, other);
  }
  HWY_UNROLL(4)
  for (int i = 0; i < R; ++i)
    sum_four<std::int32_t>(hn::Add(sum[i][0], other[i][0]), hn::Add(sum[i][1], other[i][1]),
                           hn::Add(sum[i][2], other[i][2]), hn::Add(sum[i][3], other[i][3]), sums + i * 4);
}

/// With 16 registers, a tile of two rows keeps its sums in them.
template <class RowT, class ColumnT>
void tile_rows(const Int8Tile& t, int count, std::int32_t* sums) {
  constexpr int most = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
  for (int i = 0; i < count; i += most) {
    Int8Tile part = t;
    for (int r = 0; i + r < count && r < most; ++r) part.rows[r] = t.rows[i + r];
    const int rows = count - i < most ? count - i : most;
    if constexpr (most == 4) {
      if (rows == 4) tile_of<4, RowT, ColumnT>(part, sums + i * 4);
      if (rows == 3) tile_of<3, RowT, ColumnT>(part, sums + i * 4);
    }
    if (rows == 2) tile_of<2, RowT, ColumnT>(part, sums + i * 4);
    if (rows == 1) tile_of<1, RowT, ColumnT>(part, sums + i * 4);
  }
}

void tile(const Int8Tile& t, int count, bool rows_unsigned, std::int32_t* sums) {
  if (rows_unsigned) {
    tile_rows<std::uint8_t, std::int8_t>(t, count, sums);
  } else {
    tile_rows<std::int8_t, std::uint8_t>(t, count, sums);
  }
}

HWY_INLINE SimdVec<float> as_float(hn::Vec<Narrow<std::int8_t>> q) {
  return hn::ConvertTo(Simd<float>(), hn::PromoteTo(Simd<std::int32_t>(), q));
}

template <int R>
HWY_NOINLINE void float_tile_of(const Int8Tile& t, float* sums) {
  const Simd<float> d;
  const Narrow<std::int8_t> bytes;
  const float* row[R];
  const std::int8_t* column[4];
  SimdVec<float> sum[R][4];
  for (int i = 0; i < R; ++i) {
    row[i] = static_cast<const float*>(t.rows[i]);
    for (int j = 0; j < 4; ++j) sum[i][j] = hn::Zero(d);
  }
  for (int j = 0; j < 4; ++j) column[j] = static_cast<const std::int8_t*>(t.columns[j]);
  int64_t p = 0;
  for (; p + kLanes<float> <= t.k; p += kLanes<float>) {
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      const auto w = as_float(hn::LoadU(bytes, column[j] + p));
      HWY_UNROLL(4)
      for (int i = 0; i < R; ++i) sum[i][j] = hn::MulAdd(w, hn::LoadU(d, row[i] + p), sum[i][j]);
    }
  }
  if (p < t.k) {
    for (int j = 0; j < 4; ++j) {
      const auto w = as_float(load_bytes(bytes, column[j] + p, t.k - p));
      for (int i = 0; i < R; ++i) sum[i][j] = hn::MulAdd(w, load_part(row[i] + p, t.k - p), sum[i][j]);
    }
  }
  HWY_UNROLL(4)
  for (int i = 0; i < R; ++i) sum_four<float>(sum[i][0], sum[i][1], sum[i][2], sum[i][3], sums + i * 4);
}

void float_tile(const Int8Tile& t, int count, float* sums) {
  constexpr int most = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
  for (int i = 0; i < count; i += most) {
    Int8Tile part = t;
    for (int r = 0; i + r < count && r < most; ++r) part.rows[r] = t.rows[i + r];
    const int rows = count - i < most ? count - i : most;
    if constexpr (most == 4) {
      if (rows == 4) float_tile_of<4>(part, sums + i * 4);
      if (rows == 3) float_tile_of<3>(part, sums + i * 4);
    }
    if (rows == 2) float_tile_of<2>(part, sums + i * 4);
    if (rows == 1) float_tile_of<1>(part, sums + i * 4);
  }
}

bool range(const float* x, int64_t n, float& low, float& high) {
  const Simd<float> d;
  auto least = hn::Zero(d), greatest = hn::Zero(d), rest = hn::Zero(d);  // 0 times a number is 0, otherwise NaN
  int64_t i = 0;
  for (; i < n; i += kLanes<float>) {
    const auto v = i + kLanes<float> <= n ? hn::LoadU(d, x + i) : load_part(x + i, n - i);
    least = hn::Min(least, v);
    greatest = hn::Max(greatest, v);
    rest = hn::MulAdd(v, hn::Zero(d), rest);
  }
  low = hn::GetLane(hn::MinOfLanes(d, least));
  high = hn::GetLane(hn::MaxOfLanes(d, greatest));
  return hn::GetLane(hn::SumOfLanes(d, rest)) == 0;
}

void quantize(const float* x, int64_t n, float step, std::int32_t zero, std::uint8_t* q) {
  const Simd<float> d;
  const Simd<std::int32_t> d32;
  const Narrow<std::uint8_t> bytes;
  const auto divisor = hn::Set(d, step);
  const auto shift = hn::Set(d32, zero);
  for (int64_t i = 0; i < n; i += kLanes<float>) {
    const int64_t count = n - i < kLanes<float> ? n - i : kLanes<float>;
    const auto v = count == kLanes<float> ? hn::LoadU(d, x + i) : load_part(x + i, count);
    const auto value = hn::DemoteTo(bytes, hn::Add(hn::NearestInt(hn::Div(v, divisor)), shift));  // saturates
    if (count == kLanes<float>) {
      hn::StoreU(value, bytes, q + i);
    } else {
      HWY_ALIGN std::uint8_t lanes[hn::MaxLanes(Narrow<std::uint8_t>())];
      hn::Store(value, bytes, lanes);
      std::memcpy(q + i, lanes, static_cast<std::size_t>(count));
    }
  }
}

void dequantize(const std::int8_t* q, int64_t n, float scale, float* w) {
  const Simd<float> d;
  const Narrow<std::int8_t> bytes;
  const auto factor = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + kLanes<float> <= n; i += kLanes<float>)
    hn::StoreU(hn::Mul(as_float(hn::LoadU(bytes, q + i)), factor), d, w + i);
  for (; i < n; ++i) w[i] = static_cast<float>(q[i]) * scale;
}

Int8Ops int8_products(bool dot_instructions) {
  Int8Ops ops{&tile, &float_tile, &range, &quantize, &dequantize};
#if HWY_TARGET == HWY_AVX3
  if (const Int8TileFn better = dot_instructions ? vnni_tile() : nullptr) ops.tile = better;
#else
  (void)dot_instructions;
#endif
  return ops;
}

}  // namespace
}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels::cpu {
HWY_EXPORT(int8_products);
Int8Ops int8_ops(bool dot_instructions) { return HWY_DYNAMIC_DISPATCH(int8_products)(dot_instructions); }
}  // namespace levin::kernels::cpu
#endif
