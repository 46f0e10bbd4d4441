#pragma once
// Conversions between integers and floats, rounded once in each of CUDA's four modes _rn, _rz, _rd and _ru.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace levin::emulator {

enum class Rounding { nearest, zero, down, up };  ///< nearest: ties to even

/// An integer wide enough for the exact difference of any integer and a float near it.
__extension__ using Int128 = __int128;

constexpr int sign_of(Int128 x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

/// Rounds a number whose nearest float is `nearest` and that lies above it (rest = 1), below it (-1) or equals it (0).
template <class F>
F step_towards(F nearest, int rest, Rounding rounding) {
  constexpr F infinity = std::numeric_limits<F>::infinity();
  if (rounding == Rounding::zero) {
    rounding = nearest > 0 || (nearest == 0 && rest > 0) ? Rounding::down : Rounding::up;
  }
  if (rounding == Rounding::down && rest < 0) return std::nextafter(nearest, -infinity);
  if (rounding == Rounding::up && rest > 0) return std::nextafter(nearest, infinity);
  return nearest;
}

inline float narrowed(double x, Rounding rounding) {
  const float nearest = static_cast<float>(x);
  const double back = static_cast<double>(nearest);
  return step_towards(nearest, x > back ? 1 : x < back ? -1 : 0, rounding);
}

template <class F, class I>
F from_integer(I x, Rounding rounding) {
  const F nearest = static_cast<F>(x);
  return step_towards(nearest, sign_of(static_cast<Int128>(x) - static_cast<Int128>(nearest)), rounding);
}

/// Returns x rounded to odd: the float equal to x, or the neighbour with an odd significand. Rounding that again, to a
/// format with at least two bits fewer, equals rounding x directly.
inline float to_odd(double x) {
  const float towards_zero = narrowed(x, Rounding::zero);
  if (static_cast<double>(towards_zero) == x || std::isnan(x)) return towards_zero;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(towards_zero) | 1u);
}
template <class I>
requires std::is_integral_v<I>
float to_odd(I x) {
  const float towards_zero = from_integer<float>(x, Rounding::zero);
  if (static_cast<Int128>(towards_zero) == static_cast<Int128>(x)) return towards_zero;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(towards_zero) | 1u);
}

/// Converts a float to an integer. Values out of range saturate. NaN gives zero, or only the highest bit if either type
/// has 64 bits.
template <class I, class F>
I to_integer(F x, Rounding rounding) {
  using Limits = std::numeric_limits<I>;
  if (std::isnan(x)) {
    constexpr bool wide = sizeof(I) == 8 || sizeof(F) == 8;
    return wide ? static_cast<I>(std::uint64_t{1} << (8 * sizeof(I) - 1)) : I{0};
  }
  F whole = x;
  switch (rounding) {
    case Rounding::nearest:
      whole = std::nearbyint(x);
      break;
    case Rounding::zero:
      whole = std::trunc(x);
      break;
    case Rounding::down:
      whole = std::floor(x);
      break;
    case Rounding::up:
      whole = std::ceil(x);
      break;
  }
  const F beyond = std::ldexp(F{1}, Limits::digits);
  if (whole >= beyond) return Limits::max();
  if (whole <= static_cast<F>(Limits::min())) return Limits::min();
  return static_cast<I>(whole);
}

}  // namespace levin::emulator
