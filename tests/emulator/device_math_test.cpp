// CUDA's integer intrinsics compared with simple loops, its conversions with exact comparisons, its mathematical
// functions with their definitions.
#include <doctest/doctest.h>
#include <levin/emulator/device_math.h>
#include <math_constants.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>
#include <type_traits>
#include <vector>

#include "support/comparison.h"

using levin::test::approx;

namespace {

/// Returns edge cases and random words, some with few bits set.
std::vector<std::uint32_t> words() {
  std::vector<std::uint32_t> list = {0u, 1u, 2u, 0x7fffffffu, 0x80000000u, 0x80000001u, 0xfffffffeu, 0xffffffffu};
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) list.push_back(static_cast<std::uint32_t>(random()) >> (random() % 32));
  for (int i = 0; i < 50; ++i) list.push_back(static_cast<std::uint32_t>(random()));
  return list;
}

bool bit(std::uint64_t x, int i) { return ((x >> i) & 1u) != 0; }

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("bits are counted, found, reversed") {
  int wrong = 0;
  const auto all = words();
  for (const std::uint32_t low : all) {
    const std::uint64_t x = (static_cast<std::uint64_t>(all[low % all.size()]) << 32) | low;
    for (const int width : {32, 64}) {
      const std::uint64_t value = width == 32 ? low : x;
      int count = 0, first = 0, leading = 0;
      std::uint64_t reversed = 0;
      for (int i = 0; i < width; ++i) {
        count += bit(value, i);
        if (first == 0 && bit(value, i)) first = i + 1;
        if (bit(value, i)) reversed |= std::uint64_t{1} << (width - 1 - i);
      }
      while (leading < width && !bit(value, width - 1 - leading)) ++leading;
      const auto narrow = static_cast<int>(low);
      const auto wide = static_cast<long long>(value);
      wrong += count != (width == 32 ? __popc(low) : __popcll(value));
      wrong += first != (width == 32 ? __ffs(narrow) : __ffsll(wide));
      wrong += leading != (width == 32 ? __clz(narrow) : __clzll(wide));
      wrong += reversed != (width == 32 ? __brev(low) : __brevll(value));
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("bytes are permuted and words shifted out of pairs") {
  CHECK(__byte_perm(0x33221100u, 0x77665544u, 0x3210u) == 0x33221100u);
  CHECK(__byte_perm(0x33221100u, 0x77665544u, 0x7531u) == 0x77553311u);
  CHECK(__byte_perm(0x33221100u, 0x77665544u, 0xffff0246u) == 0x00224466u);
  int wrong = 0;
  const auto all = words();
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const std::uint32_t low = all[i], high = all[i + 1];
    for (unsigned shift = 0; shift < 70; ++shift) {
      const unsigned wrapped = shift % 32, clamped = shift < 32 ? shift : 32;
      std::uint32_t left = 0, right = 0, left_clamped = 0, right_clamped = 0;
      const auto of_pair = [&](int place) { return bit(place < 32 ? low : high, place % 32); };
      for (int to = 0; to < 32; ++to) {
        const auto put = [to](bool on) { return on ? 1u << to : 0u; };
        left |= put(of_pair(to + 32 - static_cast<int>(wrapped)));
        left_clamped |= put(of_pair(to + 32 - static_cast<int>(clamped)));
        right |= put(of_pair(to + static_cast<int>(wrapped)));
        right_clamped |= put(of_pair(to + static_cast<int>(clamped)));
      }
      wrong += left != __funnelshift_l(low, high, shift) || left_clamped != __funnelshift_lc(low, high, shift);
      wrong += right != __funnelshift_r(low, high, shift) || right_clamped != __funnelshift_rc(low, high, shift);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("high words of products, 24-bit products, means, differences, dot products") {
  int wrong = 0;
  const auto all = words();
  for (const std::uint32_t a : all) {
    for (const std::uint32_t b : all) {
      // Long multiplication: one bit of b at a time, keeping the bits that leave the low word.
      std::uint64_t product = 0;
      for (int i = 0; i < 32; ++i) product += bit(b, i) ? static_cast<std::uint64_t>(a) << i : 0;
      const auto x = static_cast<int>(a), y = static_cast<int>(b);
      const auto sx = static_cast<std::int64_t>(x), sy = static_cast<std::int64_t>(y);
      wrong += __umulhi(a, b) != product >> 32;
      wrong += __mulhi(x, y) != static_cast<int>((sx * sy - ((sx * sy) & 0xffffffff)) / (std::int64_t{1} << 32));
      wrong +=
          __umul24(a, b) != static_cast<std::uint32_t>(static_cast<std::uint64_t>(a % (1u << 24)) * (b % (1u << 24)));
      wrong += __hadd(x, y) != std::floor(static_cast<double>(sx + sy) / 2);
      wrong += __rhadd(x, y) != std::ceil(static_cast<double>(sx + sy) / 2);
      wrong += __uhadd(a, b) != (static_cast<std::uint64_t>(a) + b) / 2;
      wrong += __urhadd(a, b) != (static_cast<std::uint64_t>(a) + b + 1) / 2;
      wrong += __sad(x, y, 7u) != static_cast<std::uint32_t>((sx > sy ? sx - sy : sy - sx) + 7);
      wrong += __usad(a, b, 7u) != (a > b ? a - b : b - a) + 7;
      unsigned dot = 5;
      int signed_dot = 5;
      for (int i = 0; i < 32; i += 8) {
        const auto p = static_cast<int>((a >> i) % 256), q = static_cast<int>((b >> i) % 256);
        dot += static_cast<unsigned>(p * q);
        signed_dot += (p - (p > 127 ? 256 : 0)) * (q - (q > 127 ? 256 : 0));
      }
      wrong += __dp4a(a, b, 5u) != dot || __dp4a(x, y, 5) != signed_dot;
      // (a 2^32 + b)^2, whose high word is a^2 + the carry out of 2ab 2^32 + b^2.
      const std::uint64_t wide = (static_cast<std::uint64_t>(a) << 32) | b;
      const std::uint64_t square = static_cast<std::uint64_t>(b) * b, cross = static_cast<std::uint64_t>(a) * b;
      const std::uint64_t middle = (square >> 32) + 2 * (cross & 0xffffffffu);
      const std::uint64_t high = static_cast<std::uint64_t>(a) * a + 2 * (cross >> 32) + (middle >> 32);
      wrong += __umul64hi(wide, wide) != high;
    }
  }
  CHECK(wrong == 0);
  CHECK((__mul24(0x00ffffff, 5) == -5 && __mul24(-3, 0x7f000004) == -12 && __mul24(1 << 22, 1 << 10) == 0));
  CHECK((__mul64hi(-1, 1) == -1 && __mul64hi(1LL << 62, 1LL << 62) == 1LL << 60));
  CHECK(__mul64hi(std::numeric_limits<long long>::min(), 2) == -1);
}

TEST_CASE("minima and maxima have the toolkit's overloads") {
  CHECK((min(3, -4) == -4 && max(3, -4) == 3));
  CHECK((max(-1, 1u) == 0xffffffffu && min(-1, 1u) == 1u));  // compares as unsigned
  CHECK((min(3L, 4L) == 3 && max(3LL, 4LL) == 4 && max(3uLL, 4LL) == 4u && min(std::int64_t{5}, std::int64_t{6}) == 5));
  CHECK((min(1.0f, kNan) == 1.0f && max(kNan, 1.0f) == 1.0f && std::isnan(max(kNan, kNan))));
  CHECK((fminf(kNan, 2.0f) == 2.0f && fmaxf(2.0f, kNan) == 2.0f));
  CHECK((std::is_same_v<decltype(min(1.0f, 2.0f)), float> && std::is_same_v<decltype(min(1.0f, 2.0)), double>));
  CHECK((std::is_same_v<decltype(min(1, 2u)), unsigned> && std::is_same_v<decltype(max(1LL, 2LL)), long long>));
  CHECK((std::is_same_v<decltype(abs(-1.5f)), float> && abs(-1.5f) == 1.5f && abs(-3) == 3 && abs(-3LL) == 3));
}

TEST_CASE("casts of bits") {
  CHECK((__float_as_int(-1.0f) == static_cast<int>(0xbf800000u) && __float_as_uint(1.0f) == 0x3f800000u));
  CHECK((__int_as_float(0x40490fdb) == CUDART_PI_F && __uint_as_float(0xff800000u) == -kInfinity));
  CHECK((__double_as_longlong(1.0) == 0x3ff0000000000000 && __longlong_as_double(0x4000000000000000) == 2.0));
  CHECK((__hiloint2double(__double2hiint(-0.1), __double2loint(-0.1)) == -0.1));
  CHECK((std::isnan(CUDART_NAN_F) && std::isnan(CUDART_NAN) && CUDART_INF == HUGE_VAL && CUDART_LN2_F == logf(2.0f)));
}

TEST_CASE("floats become integers in each direction, clamped") {
  CHECK((__float2int_rn(2.5f) == 2 && __float2int_rn(-3.5f) == -4 && __float2int_rz(-3.9f) == -3));
  CHECK((__float2int_rd(-3.1f) == -4 && __float2int_ru(-3.9f) == -3 && __float2int_ru(3.1f) == 4));
  CHECK((__float2int_rn(3e9f) == 2147483647 && __float2int_rn(-kInfinity) == -2147483647 - 1));
  CHECK((__float2int_rn(kNan) == 0 && __float2uint_rn(kNan) == 0 && __float2uint_rn(-5.0f) == 0));
  CHECK((__float2uint_rn(4294967040.0f) == 4294967040u && __float2uint_rz(1e10f) == 0xffffffffu));
  CHECK((__float2ll_rn(kNan) == std::numeric_limits<long long>::min() && __float2ull_rn(kNan) == 1ull << 63));
  CHECK((__double2int_rn(NAN) == -2147483647 - 1 && __double2ll_rd(-0.5) == -1 && __double2ull_ru(0.5) == 1u));
  volatile float edge = 0x1p63f;  // volatile, because the compiler may fold a cast out of range to any value
  CHECK((__float2ull_rn(kInfinity) == ~0ull && __float2ll_rn(edge) == std::numeric_limits<long long>::max()));
}

TEST_CASE("integers and doubles become floats in each direction") {
  std::mt19937_64 random(2);
  int wrong = 0;
  for (int i = 0; i < 50000; ++i) {
    const auto x = static_cast<long long>(random()) >> (random() % 64);
    const auto exact = static_cast<long double>(x);  // at least 64 bits
    const float down = __ll2float_rd(x), up = __ll2float_ru(x), nearest = __ll2float_rn(x);
    wrong += static_cast<long double>(down) > exact || static_cast<long double>(up) < exact;
    wrong += down != up && std::nextafter(down, kInfinity) != up;
    wrong += nearest != static_cast<float>(x) || __ll2float_rz(x) != (x > 0 ? down : up);
    const auto y = static_cast<double>(x) * 1.7e-13;
    wrong += static_cast<double>(__double2float_rd(y)) > y || static_cast<double>(__double2float_ru(y)) < y;
    wrong += __double2float_rn(y) != static_cast<float>(y);
    wrong += static_cast<long double>(__ll2double_rd(x)) > exact || static_cast<long double>(__ll2double_ru(x)) < exact;
    wrong += __int2float_rn(static_cast<int>(x)) != static_cast<float>(static_cast<int>(x));
    wrong += __uint2double_rn(static_cast<unsigned>(x)) != static_cast<double>(static_cast<unsigned>(x));
  }
  CHECK(wrong == 0);
  CHECK((__double2float_rz(1e300) == std::numeric_limits<float>::max() && __double2float_ru(1e300) == kInfinity));
  CHECK((__double2float_ru(1e-300) == std::numeric_limits<float>::denorm_min() && __double2float_rd(1e-300) == 0.0f));
  CHECK((__ull2float_rn(~0ull) == 0x1p64f && __ull2float_rz(~0ull) == 0x1.fffffep63f));
}

TEST_CASE("arithmetic is rounded once for each operation") {
  volatile float third = 1.0f / 3.0f, three = 3.0f;
  CHECK(__fadd_rn(__fmul_rn(third, three), -1.0f) == 0.0f);
  CHECK(__fmaf_rn(third, three, -1.0f) == 0x1p-25f);
  CHECK((__fsub_rn(1.0f, 3.0f) == -2.0f && __fdiv_rn(1.0f, three) == third && __frcp_rn(three) == third));
  CHECK((__fsqrt_rn(2.0f) == std::sqrt(2.0f) && __frsqrt_rn(4.0f) == 0.5f && __dsqrt_rn(2.0) == std::sqrt(2.0)));
  CHECK((__dadd_rn(1, 2) == 3 && __dmul_rn(2, 3) == 6 && __ddiv_rn(1, 4) == 0.25 && __drcp_rn(4) == 0.25));
  CHECK((__dsub_rn(1, 2) == -1 && __fma_rn(2, 3, 4) == 10));
  CHECK((__saturatef(-1.0f) == 0.0f && __saturatef(0.25f) == 0.25f && __saturatef(7.0f) == 1.0f));
  CHECK(__saturatef(kNan) == 0.0f);
}

TEST_CASE("fast functions have the GPU's limits") {
  CHECK((__fdividef(6.0f, 3.0f) == 2.0f && __fdividef(1e38f, 0x1.8p126f) == 0.0f &&
         std::isnan(__fdividef(kInfinity, 2e38f))));
  CHECK((__powf(2.0f, 10.0f) == 1024.0f && std::isnan(__powf(-2.0f, 2.0f))));
  CHECK(
      (__expf(1.0f) == expf(1.0f) && __logf(3.0f) == logf(3.0f) && __log2f(8.0f) == 3.0f && __log10f(100.0f) == 2.0f));
  CHECK((__exp10f(2.0f) == 100.0f && __tanf(1.0f) == tanf(1.0f) && __tanhf(1.0f) == tanhf(1.0f)));
  float sine = 0, cosine = 0;
  __sincosf(1.0f, &sine, &cosine);
  CHECK((sine == __sinf(1.0f) && cosine == __cosf(1.0f)));
}

TEST_CASE("functions that C lacks") {
  CHECK((rsqrtf(16.0f) == 0.25f && rsqrt(16.0) == 0.25 && rsqrt(16.0f) == 0.25f && rcbrtf(8.0f) == 0.5f));
  CHECK((rsqrtf(0.0f) == kInfinity && std::isnan(rsqrtf(-1.0f))));
  CHECK(rcbrt(27.0) == approx(1.0 / 3, {.relative = 1e-15}));
  CHECK((exp10f(3.0f) == 1000.0f && rhypotf(3.0f, 4.0f) == 0.2f));
  float sine = 0, cosine = 0;
  sincosf(0.5f, &sine, &cosine);
  CHECK((sine == approx(sinf(0.5f), {.relative = 1e-6}) && cosine == approx(cosf(0.5f), {.relative = 1e-6})));
  for (int i = -20; i <= 20; ++i) {
    sincospif(0.5f * static_cast<float>(i), &sine, &cosine);
    const int quarter = ((i % 4) + 4) % 4;
    CHECK((sine == (quarter == 1 ? 1.0f : quarter == 3 ? -1.0f : 0.0f)));
    CHECK((cosine == (quarter == 0 ? 1.0f : quarter == 2 ? -1.0f : 0.0f)));
    const double x = 0.137 * i;
    CHECK(sinpi(x) == approx(std::sin(std::numbers::pi * x), {.relative = 1e-14, .absolute = 1e-15}));
    const auto narrow = static_cast<float>(x);
    CHECK(cospif(narrow) == approx(std::cos(std::numbers::pi * narrow), {.relative = 1e-6}));
  }
  CHECK(std::isnan(sinpif(kInfinity)));
  CHECK((normcdff(0.0f) == 0.5f && normcdf(-10.0) == approx(7.619853024160526e-24, {.relative = 1e-12})));
}

TEST_CASE("erfinv inverts erf, near zero and in the tails") {
  for (const double y : {1e-300, 1e-12, 1e-8, 1e-5, 0.01, 0.3, 0.4769362762044699, 0.9, 1.5, 2.2, 3.0}) {
    // erf returns y as precisely as its derivative allows.
    const double slack = 1e-15 + 1e-16 / (y * std::exp(-y * y));
    CHECK(erfinv(std::erf(y)) == approx(y, {.relative = slack < 1e-14 || y < 1e-3 ? 4e-15 : 4 * slack}));
    CHECK(erfinv(-std::erf(y)) == -erfinv(std::erf(y)));
  }
  CHECK((erfinvf(1.0f) == kInfinity && erfinvf(-1.0f) == -kInfinity && std::isnan(erfinvf(1.5f)) &&
         std::isnan(erfinvf(kNan))));
  CHECK(erfinv(1 - 0x1p-53) == approx(5.863584748755168, {.relative = 1e-14}));
  CHECK((erfinvf(0.0f) == 0.0f && std::signbit(erfinvf(-0.0f))));
}

TEST_CASE("C's names exist without std, and cached loads and stores are ordinary ones") {
  const float x = 0.7f;
  CHECK((expf(x) > 2 && logf(x) < 0 && tanhf(x) < x && erff(x) < x && log1pf(x) < x && fabsf(-x) == x && exp(x) > 2));
  CHECK((isnan(kNan) && !isnan(1.0) && isinf(kInfinity) && isfinite(x) && signbit(-x) && !isfinite(NAN)));
  struct alignas(16) Four {
    float values[4];
  };
  Four from{{1, 2, 3, 4}}, to{};
  __stcs(&to, __ldg(&from));
  CHECK((to.values[3] == 4 && __ldcg(&from.values[1]) == 2 && __ldcs(&from.values[2]) == 3));
  __stcg(&to.values[0], 9.0f);
  CHECK(to.values[0] == 9);
  const long long before = clock64();
  CHECK(clock64() >= before);
}
