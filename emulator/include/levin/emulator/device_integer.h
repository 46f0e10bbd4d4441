#pragma once
// CUDA's integer intrinsics, reinterpreting casts, and conversions between integers and floats, by their own names.

#include <levin/emulator/rounding.h>

#include <bit>
#include <cstdint>

// --- Bits -----------------------------------------------------------------------------------------------------------

inline int __popc(unsigned int x) { return std::popcount(x); }
inline int __popcll(unsigned long long int x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long int x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
/// Returns the position of the lowest set bit, counted from 1, or 0 if no bit is set.
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline int __ffsll(long long int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1; }

inline unsigned int __brev(unsigned int x) {
  x = ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
  x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
  x = ((x >> 4) & 0x0f0f0f0fu) | ((x & 0x0f0f0f0fu) << 4);
  x = ((x >> 8) & 0x00ff00ffu) | ((x & 0x00ff00ffu) << 8);
  return std::rotl(x, 16);
}
inline unsigned long long int __brevll(unsigned long long int x) {
  const unsigned long long low = __brev(static_cast<unsigned>(x)), high = __brev(static_cast<unsigned>(x >> 32));
  return (low << 32) | high;
}

/// Returns four of the eight bytes of y:x, chosen by the four low hexadecimal digits of `selector`.
inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
  const std::uint64_t source = (static_cast<std::uint64_t>(y) << 32) | x;
  unsigned int result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned byte = (selector >> (4 * i)) & 7u;
    result |= static_cast<unsigned>((source >> (8 * byte)) & 0xffu) << (8 * i);
  }
  return result;
}

/// Shift high:low and return the high (l) or low (r) word. The distance wraps at 32, or is clamped to 32 (c).
inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift) {
  const std::uint64_t both = (static_cast<std::uint64_t>(high) << 32) | low;
  return static_cast<unsigned>((both << (shift & 31u)) >> 32);
}
inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift) {
  const std::uint64_t both = (static_cast<std::uint64_t>(high) << 32) | low;
  return static_cast<unsigned>(both >> (shift & 31u));
}
inline unsigned int __funnelshift_lc(unsigned int low, unsigned int high, unsigned int shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline unsigned int __funnelshift_rc(unsigned int low, unsigned int high, unsigned int shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}

// --- Products, means, sums ------------------------------------------------------------------------------------------

inline int __mulhi(int x, int y) { return static_cast<int>((static_cast<std::int64_t>(x) * y) >> 32); }
inline unsigned int __umulhi(unsigned int x, unsigned int y) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(x) * y) >> 32);
}
inline long long int __mul64hi(long long int x, long long int y) {
  return static_cast<long long>((static_cast<levin::emulator::Int128>(x) * y) >> 64);
}
inline unsigned long long int __umul64hi(unsigned long long int x, unsigned long long int y) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>((static_cast<Wide>(x) * y) >> 64);
}
/// Returns the low word of the product of the operands' 24 lowest bits.
inline unsigned int __umul24(unsigned int x, unsigned int y) { return (x & 0xffffffu) * (y & 0xffffffu); }
inline int __mul24(int x, int y) {
  const auto extended = [](int v) {
    return static_cast<std::int64_t>(static_cast<int>(static_cast<unsigned>(v) << 8) >> 8);
  };
  return static_cast<int>(static_cast<std::uint32_t>(extended(x) * extended(y)));
}

/// Return the mean without overflow, rounded down (hadd) or up (rhadd).
inline int __hadd(int x, int y) { return static_cast<int>((static_cast<std::int64_t>(x) + y) >> 1); }
inline int __rhadd(int x, int y) { return static_cast<int>((static_cast<std::int64_t>(x) + y + 1) >> 1); }
inline unsigned int __uhadd(unsigned int x, unsigned int y) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(x) + y) >> 1);
}
inline unsigned int __urhadd(unsigned int x, unsigned int y) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(x) + y + 1) >> 1);
}

/// Returns |x - y| + z.
inline unsigned int __sad(int x, int y, unsigned int z) {
  const auto a = static_cast<unsigned>(x), b = static_cast<unsigned>(y);
  return (x > y ? a - b : b - a) + z;
}
inline unsigned int __usad(unsigned int x, unsigned int y, unsigned int z) { return (x > y ? x - y : y - x) + z; }

/// Returns c plus the four products of bytes.
inline int __dp4a(int a, int b, int c) {
  auto sum = static_cast<unsigned>(c);
  for (int shift = 0; shift < 32; shift += 8) {
    sum += static_cast<unsigned>(static_cast<std::int8_t>(a >> shift) * static_cast<std::int8_t>(b >> shift));
  }
  return static_cast<int>(sum);
}
inline unsigned int __dp4a(unsigned int a, unsigned int b, unsigned int c) {
  for (int shift = 0; shift < 32; shift += 8) c += ((a >> shift) & 0xffu) * ((b >> shift) & 0xffu);
  return c;
}

// --- Minimum and maximum --------------------------------------------------------------------------------------------

// Exactly the toolkit's overloads: a signed and an unsigned integer of equal width compare as unsigned, and integers of
// different widths are ambiguous.
#define LEVIN_EMULATOR_MIN_MAX(A, B, R)                   \
  inline R min(A a, B b) {                                \
    const R x = static_cast<R>(a), y = static_cast<R>(b); \
    return y < x ? y : x;                                 \
  }                                                       \
  inline R max(A a, B b) {                                \
    const R x = static_cast<R>(a), y = static_cast<R>(b); \
    return x < y ? y : x;                                 \
  }
#define LEVIN_EMULATOR_MIN_MAX_OF(I)                \
  LEVIN_EMULATOR_MIN_MAX(I, I, I)                   \
  LEVIN_EMULATOR_MIN_MAX(I, unsigned I, unsigned I) \
  LEVIN_EMULATOR_MIN_MAX(unsigned I, I, unsigned I) \
  LEVIN_EMULATOR_MIN_MAX(unsigned I, unsigned I, unsigned I)
LEVIN_EMULATOR_MIN_MAX_OF(int)
LEVIN_EMULATOR_MIN_MAX_OF(long)
LEVIN_EMULATOR_MIN_MAX_OF(long long)
#undef LEVIN_EMULATOR_MIN_MAX
#undef LEVIN_EMULATOR_MIN_MAX_OF

// --- Casts ----------------------------------------------------------------------------------------------------------

inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned int __float_as_uint(float x) { return std::bit_cast<unsigned int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned int x) { return std::bit_cast<float>(x); }
inline long long int __double_as_longlong(double x) { return std::bit_cast<long long int>(x); }
inline double __longlong_as_double(long long int x) { return std::bit_cast<double>(x); }
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  const auto bits = (static_cast<std::uint64_t>(static_cast<unsigned>(high)) << 32) | static_cast<unsigned>(low);
  return std::bit_cast<double>(bits);
}

// --- Conversions ----------------------------------------------------------------------------------------------------

#define LEVIN_EMULATOR_CONVERT(F, floating, I, integer, suffix, rounding)            \
  inline I __##floating##2##integer##_##suffix(F x) {                                \
    return levin::emulator::to_integer<I>(x, levin::emulator::Rounding::rounding);   \
  }                                                                                  \
  inline F __##integer##2##floating##_##suffix(I x) {                                \
    return levin::emulator::from_integer<F>(x, levin::emulator::Rounding::rounding); \
  }
#define LEVIN_EMULATOR_CONVERT_DIRECTION(suffix, rounding)                              \
  LEVIN_EMULATOR_CONVERT(float, float, int, int, suffix, rounding)                      \
  LEVIN_EMULATOR_CONVERT(float, float, unsigned int, uint, suffix, rounding)            \
  LEVIN_EMULATOR_CONVERT(float, float, long long int, ll, suffix, rounding)             \
  LEVIN_EMULATOR_CONVERT(float, float, unsigned long long int, ull, suffix, rounding)   \
  LEVIN_EMULATOR_CONVERT(double, double, int, int, suffix, rounding)                    \
  LEVIN_EMULATOR_CONVERT(double, double, unsigned int, uint, suffix, rounding)          \
  LEVIN_EMULATOR_CONVERT(double, double, long long int, ll, suffix, rounding)           \
  LEVIN_EMULATOR_CONVERT(double, double, unsigned long long int, ull, suffix, rounding) \
  inline float __double2float_##suffix(double x) {                                      \
    return levin::emulator::narrowed(x, levin::emulator::Rounding::rounding);           \
  }
LEVIN_EMULATOR_CONVERT_DIRECTION(rn, nearest)
LEVIN_EMULATOR_CONVERT_DIRECTION(rz, zero)
LEVIN_EMULATOR_CONVERT_DIRECTION(rd, down)
LEVIN_EMULATOR_CONVERT_DIRECTION(ru, up)
#undef LEVIN_EMULATOR_CONVERT
#undef LEVIN_EMULATOR_CONVERT_DIRECTION
