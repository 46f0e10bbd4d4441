#pragma once
// The common base of __half and __nv_bfloat16: their bits, and the toolkit's constructors and conversions.

#include <levin/emulator/rounding.h>

#include <bit>
#include <cmath>
#include <cstdint>

/// The toolkit's types for the raw bits.
struct alignas(2) __half_raw {
  unsigned short x;
};
struct alignas(4) __half2_raw {
  unsigned short x, y;
};
struct alignas(2) __nv_bfloat16_raw {
  unsigned short x;
};
struct alignas(4) __nv_bfloat162_raw {
  unsigned short x, y;
};

// A separate namespace, so that argument-dependent lookup in kernels finds nothing else of the emulator.
namespace levin::emulator::float16 {

/// Returns all bits set if `condition` holds, else 0. Conversions select with masks instead of branches: a kernel may
/// convert uninitialised values and discard the result, and the memory sanitizer reports a branch on them.
constexpr std::uint32_t mask_of(bool condition) { return 0u - static_cast<std::uint32_t>(condition); }
constexpr std::uint32_t choose(std::uint32_t mask, std::uint32_t a, std::uint32_t b) { return b ^ ((a ^ b) & mask); }

/// IEEE binary16: 5 bits of exponent, 10 of fraction.
struct Binary16 {
  using Raw = __half_raw;

  static constexpr float decode(std::uint16_t bits) {
    const std::uint32_t sign = (bits & 0x8000u) << 16, magnitude = (bits & 0x7fffu) << 13;
    const std::uint32_t exponent = magnitude & kExponent;
    // Infinity and NaN are rebiased once more, to float's highest exponent.
    const std::uint32_t normal = magnitude + kRebias + (kRebias & mask_of(exponent == kExponent));
    // A subnormal's fraction is read with the leading 1 of 2^-14, which is then subtracted.
    const float subnormal = std::bit_cast<float>(magnitude + kSmallestNormal) - std::bit_cast<float>(kSmallestNormal);
    const std::uint32_t value = choose(mask_of(exponent == 0), std::bit_cast<std::uint32_t>(subnormal), normal);
    return std::bit_cast<float>(sign | value);
  }

  /// Rounds to nearest, ties to even.
  static constexpr std::uint16_t encode(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    // The sum's last bit is 2^-24, as for subnormals, so the addition rounds.
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
    const std::uint32_t normal = (magnitude - kRebias + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    std::uint32_t h = choose(mask_of(magnitude >= kSmallestNormal), normal, subnormal);
    // Values of 65536 and above become infinity; those from 65520 to 65536 carry over to it by themselves.
    h = sign | choose(mask_of(magnitude >= 0x47800000u), 0x7c00u, h);
    // The canonical NaN of the GPU.
    return static_cast<std::uint16_t>(choose(mask_of(magnitude > 0x7f800000u), 0x7fffu, h));
  }

 private:
  static constexpr std::uint32_t kExponent = 31u << 23;         ///< binary16's exponent, moved to float's place
  static constexpr std::uint32_t kRebias = (127u - 15u) << 23;  ///< the difference of the two biases
  static constexpr std::uint32_t kSmallestNormal = kRebias + (1u << 23);  ///< 2^-14
};

/// bfloat16, the upper half of a float.
struct Bfloat16 {
  using Raw = __nv_bfloat16_raw;

  static constexpr float decode(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  /// Rounds to nearest, ties to even.
  static constexpr std::uint16_t encode(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t nearest = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return static_cast<std::uint16_t>(choose(mask_of((bits & 0x7fffffffu) > 0x7f800000u), 0x7fffu, nearest));
  }
};

/// Rounds in any direction: takes the nearest value, and moves it by one if it lies on the wrong side.
template <class Format>
std::uint16_t encode(float value, Rounding rounding) {
  const std::uint16_t nearest = Format::encode(value);
  if (rounding == Rounding::nearest) return nearest;
  const float had = std::fabs(value), got = std::fabs(Format::decode(nearest));
  const bool shorter = rounding == Rounding::zero || (rounding == Rounding::down) != std::signbit(value);
  if (shorter && got > had) return static_cast<std::uint16_t>(nearest - 1);
  if (!shorter && got < had) return static_cast<std::uint16_t>(nearest + 1);
  return nearest;
}

#define LEVIN_EMULATOR_WIDE_INTEGERS(F) \
  F(short) F(unsigned short) F(int) F(unsigned int) F(long) F(unsigned long) F(long long) F(unsigned long long)
#define LEVIN_EMULATOR_FROM_INTEGER(I) \
  Base(I value) : __x(Format::encode(to_odd(value))) {}
#define LEVIN_EMULATOR_TO_INTEGER(I) \
  operator I() const { return to_integer<I>(Format::decode(__x), Rounding::zero); }

/// Every conversion except those from raw bits rounds once. All are implicit, as in the toolkit.
template <class FormatOf>
class Base {
 public:
  using Format = FormatOf;
  using Raw = typename Format::Raw;

  Base() = default;
  constexpr Base(const Raw& raw) : __x(raw.x) {}
  Base(float value) : __x(Format::encode(value)) {}
  Base(double value) : __x(Format::encode(to_odd(value))) {}
  LEVIN_EMULATOR_WIDE_INTEGERS(LEVIN_EMULATOR_FROM_INTEGER)

  constexpr operator Raw() const { return {__x}; }
  operator float() const { return Format::decode(__x); }
  LEVIN_EMULATOR_TO_INTEGER(char)
  LEVIN_EMULATOR_TO_INTEGER(signed char)
  LEVIN_EMULATOR_TO_INTEGER(unsigned char)
  LEVIN_EMULATOR_WIDE_INTEGERS(LEVIN_EMULATOR_TO_INTEGER)
  constexpr operator bool() const { return (__x & 0x7fffu) != 0; }

 protected:
  unsigned short __x;
};
#undef LEVIN_EMULATOR_WIDE_INTEGERS
#undef LEVIN_EMULATOR_FROM_INTEGER
#undef LEVIN_EMULATOR_TO_INTEGER

template <class T>
constexpr T from_bits(std::uint16_t bits) {
  return T(typename T::Raw{bits});
}
template <class T>
constexpr std::uint16_t bits_of(T value) {
  return static_cast<typename T::Raw>(value).x;
}

}  // namespace levin::emulator::float16
