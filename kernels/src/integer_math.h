#pragma once
// Integer and bool versions, for every device, of the functions that the formulas of elementwise_rows.h use. They wrap
// around on overflow, which C++ does not guarantee for signed arithmetic: arithmetic modulo 2^64 has the right low bits
// for every narrower type.

#include <concepts>
#include <cstdint>

#if defined(__CUDACC__)
#define LEVIN_EVERYWHERE __host__ __device__
#else
#define LEVIN_EVERYWHERE
#endif

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

/// Returns min(max(x, low), high), where the bounds are within T's range.
template <std::integral T, std::integral P>
LEVIN_EVERYWHERE constexpr T clamp(T x, P low, P high) {
  return static_cast<T>(x < low ? low : x > high ? high : x);
}

}  // namespace levin::kernels::integer_math

#undef LEVIN_EVERYWHERE
