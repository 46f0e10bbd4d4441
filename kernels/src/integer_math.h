#pragma once
// Integer and bool versions, for every device, of the functions that the formulas of elementwise_rows.h use. They wrap
// around on overflow, which C++ does not guarantee for signed arithmetic: arithmetic modulo 2^64 has the right low bits
// for every narrower type.

#include "kernels/src/everywhere.h"

#include <concepts>
#include <cstdint>

namespace levin::kernels::integer_math {

template <std::integral T>
LEVIN_EVERYWHERE constexpr std::uint64_t bits_of(T x) {
  return static_cast<std::uint64_t>(x);
}

/// Returns x < 0, without the compiler warning for unsigned types.
template <std::integral T>
LEVIN_EVERYWHERE constexpr bool is_negative(T x) {
  if constexpr (std::signed_integral<T>) {
    return x < 0;
  } else {
    return false;
  }
}

template <std::integral T>
LEVIN_EVERYWHERE constexpr T where(bool condition, T a, T b) {
  return condition ? a : b;
}

template <std::integral T>
LEVIN_EVERYWHERE constexpr T keep_nan(T, T y) {
  return y;
}

template <std::integral T>
LEVIN_EVERYWHERE constexpr T neg(T x) {
  return static_cast<T>(0 - bits_of(x));
}

template <std::integral T>
LEVIN_EVERYWHERE constexpr T abs(T x) {
  return is_negative(x) ? neg(x) : x;
}

template <std::integral P, std::integral T>
LEVIN_EVERYWHERE constexpr T mul(P a, T b) {
  return static_cast<T>(bits_of(a) * bits_of(b));
}

/// Returns a * b + c.
template <std::integral P, std::integral T>
LEVIN_EVERYWHERE constexpr T fma(P a, T b, T c) {
  return static_cast<T>(bits_of(a) * bits_of(b) + bits_of(c));
}

/// Returns the quotient rounded to minus infinity. CUDA's kernels, which cannot refuse a divisor of 0, set all bits, as
/// the hardware's instruction does.
template <std::integral T>
LEVIN_EVERYWHERE constexpr T floored_quotient(T a, T b) {
  if (b == 0) return static_cast<T>(~std::uint64_t{0});
  if (std::signed_integral<T> && b == static_cast<T>(-1)) return neg(a);
  const T quotient = static_cast<T>(a / b);
  return static_cast<T>(quotient - (a % b != 0 && is_negative(a) != is_negative(b)));
}

/// Returns a - b * floored_quotient(a, b), which has the sign of b; returns a if b is 0.
template <std::integral T>
LEVIN_EVERYWHERE constexpr T floored_remainder(T a, T b) {
  if (b == 0) return a;
  if (std::signed_integral<T> && b == static_cast<T>(-1)) return 0;
  const T rest = static_cast<T>(a % b);
  return static_cast<T>(rest != 0 && is_negative(rest) != is_negative(b) ? rest + b : rest);
}

/// Returns a ^ b; a negative power is 0, except of 1 and -1.
template <std::integral T>
LEVIN_EVERYWHERE constexpr T pow(T a, T b) {
  if (is_negative(b)) return static_cast<T>(a == 1 ? 1 : a == static_cast<T>(-1) ? (b % 2 != 0 ? -1 : 1) : 0);
  std::uint64_t result = 1, factor = bits_of(a);
  for (std::uint64_t n = bits_of(b); n != 0; n >>= 1, factor *= factor)
    if ((n & 1) != 0) result *= factor;
  return static_cast<T>(result);
}

/// Returns min(max(x, low), high), where the bounds are within T's range.
template <std::integral T, std::integral P>
LEVIN_EVERYWHERE constexpr T clamp(T x, P low, P high) {
  return static_cast<T>(x < low ? low : x > high ? high : x);
}

}  // namespace levin::kernels::integer_math
