// The emulator's __half and __nv_bfloat16 compared with a simple oracle: all values of a format by ldexp, rounding by a
// search among them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

using levin::emulator::Rounding;
using levin::emulator::float16::bits_of;
using levin::emulator::float16::from_bits;

namespace {

/// Gives every operation under test one name for both types.
struct HalfNames {
  using T = __half;
  using T2 = __half2;
  static constexpr int kFractionBits = 10, kBias = 15;
  static T round(float x, Rounding rounding) {
    switch (rounding) {
      case Rounding::nearest:
        return __float2half_rn(x);
      case Rounding::zero:
        return __float2half_rz(x);
      case Rounding::down:
        return __float2half_rd(x);
      default:
        return __float2half_ru(x);
    }
  }
  static T round(long long x, Rounding rounding) {
    switch (rounding) {
      case Rounding::nearest:
        return __ll2half_rn(x);
      case Rounding::zero:
        return __ll2half_rz(x);
      case Rounding::down:
        return __ll2half_rd(x);
      default:
        return __ll2half_ru(x);
    }
  }
  static T round(double x) { return __double2half(x); }
  static float widen(T x) { return __half2float(x); }
  static T2 pair(T x, T y) { return __halves2half2(x, y); }
};
struct Bfloat16Names {
  using T = __nv_bfloat16;
  using T2 = __nv_bfloat162;
  static constexpr int kFractionBits = 7, kBias = 127;
  static T round(float x, Rounding rounding) {
    switch (rounding) {
      case Rounding::nearest:
        return __float2bfloat16_rn(x);
      case Rounding::zero:
        return __float2bfloat16_rz(x);
      case Rounding::down:
        return __float2bfloat16_rd(x);
      default:
        return __float2bfloat16_ru(x);
    }
  }
  static T round(long long x, Rounding rounding) {
    switch (rounding) {
      case Rounding::nearest:
        return __ll2bfloat16_rn(x);
      case Rounding::zero:
        return __ll2bfloat16_rz(x);
      case Rounding::down:
        return __ll2bfloat16_rd(x);
      default:
        return __ll2bfloat16_ru(x);
    }
  }
  static T round(double x) { return __double2bfloat16(x); }
  static float widen(T x) { return __bfloat162float(x); }
  static T2 pair(T x, T y) { return __halves2bfloat162(x, y); }
};

template <class Names>
class Oracle {
 public:
  static constexpr int kInfinity = 0x7fff & ~((1 << Names::kFractionBits) - 1);

  Oracle() {
    for (int bits = 0; bits <= kInfinity; ++bits) {
      const int exponent = bits >> Names::kFractionBits, fraction = bits & ((1 << Names::kFractionBits) - 1);
      const int leading = exponent == 0 ? 0 : 1 << Names::kFractionBits;
      const int scale = (exponent == 0 ? 1 : exponent) - Names::kBias - Names::kFractionBits;
      magnitudes_.push_back(std::ldexp(static_cast<long double>(leading + fraction), scale));
    }
  }

  static bool is_nan(int bits) { return (bits & 0x7fff) > kInfinity; }
  /// The value of a bit pattern that is not NaN; the bits of infinity continue the spacing below.
  long double value(int bits) const {
    const long double magnitude = magnitudes_[static_cast<std::size_t>(bits & 0x7fff)];
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
  }

  int round(long double x, Rounding rounding = Rounding::nearest) const {
    if (std::isnan(x)) return 0x7fff;
    const int sign = std::signbit(x) ? 0x8000 : 0;
    const long double magnitude = std::fabs(x);
    if (std::isinf(x)) return sign | kInfinity;
    const bool outward = (rounding == Rounding::up && sign == 0) || (rounding == Rounding::down && sign != 0);
    if (magnitude >= magnitudes_.back())
      return sign | (rounding == Rounding::nearest || outward ? kInfinity : kInfinity - 1);
    int low = 0, high = kInfinity;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (value(middle) <= magnitude ? low : high) = middle;
    }
    const long double below = magnitude - value(low), above = value(high) - magnitude;
    const bool up =
        rounding == Rounding::nearest ? above < below || (above == below && low % 2 == 1) : outward && below > 0;
    return sign | (up ? high : low);
  }

 private:
  std::vector<long double> magnitudes_;
};

template <class T>
bool same(T got, int bits) {
  return bits_of(got) == bits;
}

constexpr Rounding kDirections[] = {Rounding::nearest, Rounding::zero, Rounding::down, Rounding::up};

}  // namespace

#define LEVIN_BOTH_TYPES HalfNames, Bfloat16Names

TEST_CASE_TEMPLATE("all 65536 bit patterns have the right value and survive a round trip", Names, LEVIN_BOTH_TYPES) {
  using T = typename Names::T;
  const Oracle<Names> oracle;
  int wrong = 0;
  for (int bits = 0; bits < 0x10000; ++bits) {
    const T x = from_bits<T>(static_cast<std::uint16_t>(bits));
    const float wide = Names::widen(x);
    if (oracle.is_nan(bits)) {
      wrong += !std::isnan(wide) || !__hisnan(x) || bits_of(T(wide)) != 0x7fff;
      continue;
    }
    const bool infinite = (bits & 0x7fff) == Oracle<Names>::kInfinity;
    wrong += infinite != std::isinf(wide) || infinite != (__hisinf(x) == (bits < 0x8000 ? 1 : -1));
    wrong += !infinite && static_cast<long double>(wide) != oracle.value(bits);
    wrong += std::signbit(wide) != (bits >= 0x8000);
    wrong += bits_of(T(static_cast<double>(wide))) != bits;
    for (const Rounding rounding : kDirections) wrong += bits_of(Names::round(wide, rounding)) != bits;
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("rounding at ties, next to them, at subnormals and at overflow", Names, LEVIN_BOTH_TYPES) {
  const Oracle<Names> oracle;
  const float infinity = std::numeric_limits<float>::infinity();
  int wrong = 0;
  for (int bits = 0; bits < Oracle<Names>::kInfinity; ++bits) {
    const auto tie = static_cast<float>((oracle.value(bits) + oracle.value(bits + 1)) / 2);
    for (const float x : {std::nextafter(tie, 0.0f), tie, std::nextafter(tie, infinity)}) {
      for (const Rounding rounding : kDirections) {
        wrong += !same(Names::round(x, rounding), oracle.round(static_cast<long double>(x), rounding));
        wrong += !same(Names::round(-x, rounding), oracle.round(-static_cast<long double>(x), rounding));
      }
    }
  }
  CHECK(wrong == 0);
  std::mt19937 random(1);
  for (int i = 0; i < 50000; ++i) {
    float x;
    const auto bits = static_cast<std::uint32_t>(random());
    std::memcpy(&x, &bits, sizeof x);
    for (const Rounding rounding : kDirections) {
      wrong += !same(Names::round(x, rounding), oracle.round(static_cast<long double>(x), rounding));
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("doubles and integers are rounded once", Names, LEVIN_BOTH_TYPES) {
  using T = typename Names::T;
  const Oracle<Names> oracle;
  // So little above a tie that rounding to float first would lose it.
  const double tie = 1 + std::ldexp(1.0, -Names::kFractionBits - 1);
  CHECK(same(Names::round(tie), oracle.round(1.0L)));
  CHECK(bits_of(Names::round(tie + std::ldexp(1.0, -40))) == oracle.round(1.0L) + 1);
  CHECK(bits_of(T(tie + std::ldexp(1.0, -40))) == oracle.round(1.0L) + 1);
  CHECK(same(Names::round(1e300), Oracle<Names>::kInfinity));
  CHECK(same(Names::round(-1e-300), 0x8000));

  std::mt19937_64 random(2);
  int wrong = 0;
  for (int i = 0; i < 50000; ++i) {
    const auto x = static_cast<long long>(random()) >> (random() % 64);
    // A tie of bfloat16 plus one.
    const long long above = (1LL << (10 + i % 50)) + (1LL << (2 + i % 50)) + 1;
    for (const Rounding rounding : kDirections) {
      wrong += !same(Names::round(x, rounding), oracle.round(static_cast<long double>(x), rounding));
      wrong += !same(Names::round(above, rounding), oracle.round(static_cast<long double>(above), rounding));
      wrong += !same(Names::round(-above, rounding), oracle.round(-static_cast<long double>(above), rounding));
    }
    wrong += !same(T(x), oracle.round(static_cast<long double>(x)));
    wrong += !same(T(static_cast<unsigned long long>(x)),
                   oracle.round(static_cast<long double>(static_cast<unsigned long long>(x))));
    wrong += !same(T(static_cast<int>(x)), oracle.round(static_cast<long double>(static_cast<int>(x))));
    wrong += !same(T(static_cast<short>(x)), oracle.round(static_cast<long double>(static_cast<short>(x))));
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("arithmetic is exact and rounded once", Names, LEVIN_BOTH_TYPES) {
  using T = typename Names::T;
  const Oracle<Names> oracle;
  std::mt19937 random(3);
  int wrong = 0;
  for (int i = 0; i < 200000; ++i) {
    const T a = from_bits<T>(static_cast<std::uint16_t>(random()));
    // Half of them near a, where sums cancel.
    const auto near = static_cast<std::uint16_t>(bits_of(a) ^ (random() % 0x1000) ^ (random() % 2 << 15));
    const T b = from_bits<T>(i % 2 == 0 ? static_cast<std::uint16_t>(random()) : near);
    const auto x = static_cast<long double>(Names::widen(a)), y = static_cast<long double>(Names::widen(b));
    // Where long double's sum is inexact, one term is far below the other's last bit and decides nothing.
    wrong += !same(a + b, oracle.round(x + y)) || !same(__hadd(a, b), oracle.round(x + y));
    wrong += !same(a - b, oracle.round(x - y)) || !same(__hsub(a, b), oracle.round(x - y));
    wrong += !same(a * b, oracle.round(x * y)) || !same(__hmul(a, b), oracle.round(x * y));
    wrong += !same(a / b, oracle.round(x / y)) || !same(__hdiv(a, b), oracle.round(x / y));
    wrong += !same(hsqrt(a), oracle.round(std::sqrt(x)));
    wrong += !same(hrcp(a), oracle.round(1 / x));
    if (!__hisnan(a)) {
      wrong += !same(-a, bits_of(a) ^ 0x8000) || !same(__habs(a), bits_of(a) & 0x7fff);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("a fused multiply-add rounds once", Names, LEVIN_BOTH_TYPES) {
  using T = typename Names::T;
  const Oracle<Names> oracle;
  std::mt19937 random(4);
  int wrong = 0;
  // Exponents are close, so that long double holds the exact sum.
  const auto draw = [&] {
    const double magnitude =
        std::ldexp(1 + std::ldexp(static_cast<double>(random() % 2048), -11), static_cast<int>(random() % 12) - 6);
    return T(random() % 2 == 0 ? magnitude : -magnitude);
  };
  for (int i = 0; i < 200000; ++i) {
    const T a = draw(), b = draw(), c = draw();
    const long double exact = static_cast<long double>(Names::widen(a)) * static_cast<long double>(Names::widen(b)) +
                              static_cast<long double>(Names::widen(c));
    wrong += !same(__hfma(a, b, c), oracle.round(exact));
  }
  CHECK(wrong == 0);
  CHECK(same(__hfma(T(0.5f), T(3), T(-1)), oracle.round(0.5L)));
  CHECK(__hisnan(__hfma(T(INFINITY), T(0), T(1))));
  CHECK(__hisinf(__hfma(T(-INFINITY), T(2), T(1))) == -1);
}

TEST_CASE("a fused multiply-add takes account of an addend far below the product") {
  const float little = std::ldexp(1.0f, -100);  // bfloat16: 13 * 21 = 273 lies between 272 and 274, 275 is odd too
  CHECK(float(__hfma(__nv_bfloat16(13), __nv_bfloat16(21), __nv_bfloat16(0))) == 272.0f);
  CHECK(float(__hfma(__nv_bfloat16(13), __nv_bfloat16(21), __nv_bfloat16(little))) == 274.0f);
  CHECK(float(__hfma(__nv_bfloat16(13), __nv_bfloat16(21), __nv_bfloat16(-little))) == 272.0f);
  CHECK(float(__hfma(__nv_bfloat16(11), __nv_bfloat16(25), __nv_bfloat16(0))) == 276.0f);
  CHECK(float(__hfma(__nv_bfloat16(11), __nv_bfloat16(25), __nv_bfloat16(-little))) == 274.0f);
  CHECK(float(__hfma(__nv_bfloat16(-11), __nv_bfloat16(25), __nv_bfloat16(little))) == -274.0f);
  const float least = std::ldexp(1.0f, -24);  // half: 3 * 683 = 2049 lies between 2048 and 2050
  CHECK(float(__hfma(__half(3), __half(683), __half(0))) == 2048.0f);
  CHECK(float(__hfma(__half(3), __half(683), __half(least))) == 2050.0f);
  CHECK(float(__hfma(__half(-3), __half(683), __half(-least))) == -2050.0f);
}

TEST_CASE_TEMPLATE("comparisons, minima and maxima with NaN, zeros and infinities", Names, LEVIN_BOTH_TYPES) {
  using T = typename Names::T;
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const float values[] = {nan, -infinity, -2.0f, -0.0f, 0.0f, 1.0f, 2.0f, infinity};
  for (const float x : values) {
    for (const float y : values) {
      CAPTURE(x);
      CAPTURE(y);
      const T a(x), b(y);
      const bool unordered = std::isnan(x) || std::isnan(y);
      CHECK((__heq(a, b) == (x == y) && __hequ(a, b) == (x == y || unordered) && (a == b) == (x == y)));
      CHECK((__hne(a, b) == (x != y && !unordered) && __hneu(a, b) == (x != y) && (a != b) == (x != y)));
      CHECK((__hlt(a, b) == (x < y) && __hltu(a, b) == (x < y || unordered) && (a < b) == (x < y)));
      CHECK((__hgt(a, b) == (x > y) && __hgtu(a, b) == (x > y || unordered) && (a > b) == (x > y)));
      CHECK((__hle(a, b) == (x <= y) && __hleu(a, b) == (x <= y || unordered) && (a <= b) == (x <= y)));
      CHECK((__hge(a, b) == (x >= y) && __hgeu(a, b) == (x >= y || unordered) && (a >= b) == (x >= y)));
      CHECK(__hisnan(__hmax_nan(a, b)) == unordered);
      CHECK(__hisnan(__hmin_nan(a, b)) == unordered);
      if (unordered) {
        CHECK(__hisnan(__hmax(a, b)) == (std::isnan(x) && std::isnan(y)));
        if (!std::isnan(x)) CHECK((bits_of(__hmax(a, b)) == bits_of(a) && bits_of(__hmin(b, a)) == bits_of(a)));
      } else {
        const bool first = x > y || (x == y && !std::signbit(x));
        CHECK((bits_of(__hmax(a, b)) == bits_of(first ? a : b) && bits_of(__hmin(a, b)) == bits_of(first ? b : a)));
        CHECK(bits_of(__hmax_nan(a, b)) == bits_of(__hmax(a, b)));
      }
    }
    CHECK(bool(T(x)) == (std::isnan(x) || x != 0));
    CHECK(float(__hadd_sat(T(x), T(0))) == (std::isnan(x) || x <= 0 ? 0.0f : 1.0f));
    if (!std::isnan(x)) CHECK(float(__hfma_relu(T(x), T(1), T(0))) == (x > 0 ? x : 0.0f));
  }
  CHECK(__hisnan(__hfma_relu(T(nan), T(1), T(0))));
}

TEST_CASE_TEMPLATE("operations on pairs act on each element", Names, LEVIN_BOTH_TYPES) {
  using T = typename Names::T;
  using T2 = typename Names::T2;
  std::mt19937 random(5);
  const auto draw = [&] {
    return Names::pair(T(static_cast<int>(random() % 8) - 4), T(static_cast<int>(random() % 8) - 4));
  };
  const auto equal = [](T2 got, T x, T y) { return bits_of(got.x) == bits_of(x) && bits_of(got.y) == bits_of(y); };
  for (int i = 0; i < 200; ++i) {
    const T2 a = draw(), b = draw(), c = draw();
    CHECK((equal(a + b, a.x + b.x, a.y + b.y) && equal(a - b, a.x - b.x, a.y - b.y)));
    CHECK((equal(a * b, a.x * b.x, a.y * b.y) && equal(a / b, a.x / b.x, a.y / b.y)));
    CHECK(equal(__hfma2(a, b, c), __hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)));
    CHECK((equal(__hmax2(a, b), __hmax(a.x, b.x), __hmax(a.y, b.y)) && equal(-a, -a.x, -a.y)));
    CHECK(equal(__hlt2(a, b), T(a.x < b.x ? 1 : 0), T(a.y < b.y ? 1 : 0)));
    CHECK(__hblt2(a, b) == (a.x < b.x && a.y < b.y));
    CHECK((a != b) == (a.x != b.x && a.y != b.y));  // as in the toolkit: both differ
    CHECK(__hgt2_mask(a, b) == ((a.x > b.x ? 0xffffu : 0u) | (a.y > b.y ? 0xffff0000u : 0u)));
    CHECK(equal(h2exp(a), hexp(a.x), hexp(a.y)));
    T2 sum = a;
    sum += b;
    ++sum;
    CHECK(equal(sum, a.x + b.x + T(1), a.y + b.y + T(1)));
    CHECK((__low2float(a) == float(a.x) && __high2float(a) == float(a.y)));
    CHECK(equal(__lowhigh2highlow(a), a.y, a.x));
    // (a.x + i a.y)(b.x + i b.y) + c in small integers, which are exact.
    CHECK(equal(__hcmadd(a, b, c), a.x * b.x - a.y * b.y + c.x, a.x * b.y + a.y * b.x + c.y));
  }
}

TEST_CASE("names of the toolkit that differ between the two types") {
  const __half2 h = __floats2half2_rn(1.5f, -2.0f);
  CHECK((__half22float2(h).x == 1.5f && __half22float2(h).y == -2.0f && __half_as_ushort(h.x) == 0x3e00));
  CHECK((float(__low2half(h)) == 1.5f && float(__high2half(h)) == -2.0f && __half_as_short(h.y) == -0x4000));
  CHECK((float(__high2half2(h).x) == -2.0f && float(__half2half2(h.x).y) == 1.5f));
  CHECK((float(__lows2half2(h, h).y) == 1.5f && float(__highs2half2(h, h).x) == -2.0f));
  CHECK((float(__float22half2_rn(make_float2(3, 4)).y) == 4.0f && float(make_half2(h.y, h.x).x) == -2.0f));
  CHECK((__hisinf(CUDART_INF_FP16) == 1 && __hisnan(CUDART_NAN_FP16) && float(CUDART_MAX_NORMAL_FP16) == 65504.0f));
  const __nv_bfloat162 b = __floats2bfloat162_rn(1.5f, -2.0f);
  CHECK(
      (__bfloat1622float2(b).x == 1.5f && __bfloat16_as_ushort(b.x) == 0x3fc0 && __bfloat16_as_short(b.y) == -0x4000));
  CHECK((float(__low2bfloat16(b)) == 1.5f && float(__high2bfloat16(b)) == -2.0f));
  CHECK((float(__bfloat162bfloat162(b.x).y) == 1.5f && float(__float22bfloat162_rn(make_float2(3, 4)).y) == 4.0f));
  CHECK((float(__ushort_as_bfloat16(0x3f80)) == 1.0f && float(__short_as_half(0x3c00)) == 1.0f));
  CHECK((float(__half(__nv_bfloat16(1e30f))) == INFINITY && float(__nv_bfloat16(__half(2049.0f))) == 2048.0f));
}

TEST_CASE("conversion to integers: each direction, clamped, NaN as on the GPU") {
  CHECK((__half2int_rn(__half(2.5f)) == 2 && __half2int_rn(__half(3.5f)) == 4 && __half2int_rz(__half(-2.5f)) == -2));
  CHECK((__half2int_rd(__half(-2.5f)) == -3 && __half2int_ru(__half(-2.5f)) == -2 &&
         __half2int_rn(CUDART_NAN_FP16) == 0));
  CHECK((__half2short_rz(__half(40000.0f)) == 32767 && __half2ushort_rz(__half(-1)) == 0));
  CHECK((__half2uint_rn(CUDART_INF_FP16) == 0xffffffffu && __half2char_rz(__half(-200)) == -128));
  CHECK(__half2ll_rn(CUDART_NAN_FP16) == std::numeric_limits<long long>::min());
  CHECK((__bfloat162ll_rn(__nv_bfloat16(1e30f)) == std::numeric_limits<long long>::max()));
  CHECK((__bfloat162int_rz(__nv_bfloat16(-7.5f)) == -7 && int(__nv_bfloat16(7.5f)) == 7 && long(__half(3.7f)) == 3));
}

TEST_CASE("the types have the toolkit's conversions and layout") {
  CHECK((std::is_trivially_default_constructible_v<__half> && std::is_trivially_copyable_v<__half>));
  CHECK((std::is_convertible_v<float, __half> && std::is_convertible_v<double, __nv_bfloat16>));
  CHECK((std::is_convertible_v<long, __half> && std::is_convertible_v<__half, float>));
  CHECK((!std::is_convertible_v<__nv_bfloat16, __half> && std::is_constructible_v<__half, __nv_bfloat16>));
  CHECK((!std::is_convertible_v<__half, __nv_bfloat16> && std::is_constructible_v<__nv_bfloat16, __half>));
  const __half2 pair = __halves2half2(__ushort_as_half(0x1234), __ushort_as_half(0x5678));
  std::uint32_t word;
  std::memcpy(&word, &pair, sizeof word);
  CHECK(word == 0x56781234u);
}
