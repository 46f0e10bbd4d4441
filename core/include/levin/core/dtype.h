#pragma once
// Data types, their promotion, and the two 16-bit floats.

#include <levin/core/error.h>

#include <bit>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>

namespace levin {

using std::int64_t;

/// Element type of a tensor. Only tables and the predicates below depend on the order.
enum class DType : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean, c64, c128 };

inline constexpr int kDTypeCount = 12;      ///< number of types
inline constexpr int kRealDTypeCount = 10;  ///< the types before c64, which are those of kernels and files
/// PyTorch's names of the types; kComplex64 and kComplex128 are pairs of float32 and of float64.
inline constexpr DType kFloat64 = DType::f64, kDouble = DType::f64;
inline constexpr DType kFloat32 = DType::f32, kFloat = DType::f32;
inline constexpr DType kFloat16 = DType::f16, kHalf = DType::f16;
inline constexpr DType kBFloat16 = DType::bf16;
inline constexpr DType kInt64 = DType::i64, kLong = DType::i64;
inline constexpr DType kInt32 = DType::i32, kInt16 = DType::i16, kInt8 = DType::i8, kUInt8 = DType::u8;
inline constexpr DType kBool = DType::boolean;
inline constexpr DType kComplex64 = DType::c64, kComplex128 = DType::c128;

/// IEEE binary16 for storage; arithmetic is done in float. Conversion rounds to nearest even.
struct Half {
  std::uint16_t bits = 0;  ///< sign (1 bit), exponent (5), mantissa (10)
  constexpr Half() = default;
  /// Rounds a number; above 65504 and its rounding range the result is infinite. Doubles and integers are rounded to
  /// float first.
  constexpr explicit Half(float value);
  constexpr explicit Half(double value) : Half(static_cast<float>(value)) {}
  template <class I>
    requires std::is_integral_v<I>
  constexpr explicit Half(I value) : Half(static_cast<float>(value)) {}
  /// Widens without rounding.
  constexpr operator float() const;  // NOLINT: implicit by design, so that arithmetic widens
  /// Returns the number with this bit pattern.
  static constexpr Half from_bits(std::uint16_t b) {
    Half h;
    h.bits = b;
    return h;
  }
};

/// bfloat16 (the upper half of a float) for storage; arithmetic is done in float. Conversion rounds to nearest even.
struct BFloat16 {
  std::uint16_t bits = 0;  ///< sign (1 bit), exponent (8), mantissa (7)
  constexpr BFloat16() = default;
  /// Rounds a number. Doubles and integers are rounded to float first.
  constexpr explicit BFloat16(float value);
  constexpr explicit BFloat16(double value) : BFloat16(static_cast<float>(value)) {}
  template <class I>
    requires std::is_integral_v<I>
  constexpr explicit BFloat16(I value) : BFloat16(static_cast<float>(value)) {}
  /// Widens without rounding.
  constexpr operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  /// Returns the number with this bit pattern.
  static constexpr BFloat16 from_bits(std::uint16_t b) {
    BFloat16 h;
    h.bits = b;
    return h;
  }
};

constexpr Half::Half(float value) {
  const auto f = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (f >> 16) & 0x8000u, magnitude = f & 0x7fffffffu;
  std::uint32_t h = 0;
  if (magnitude > 0x7f800000u) {
    h = 0x7e00u;                               // NaN
  } else if (magnitude >= 0x477ff000u) {
    h = 0x7c00u;                               // rounds to 65536 or above: infinity
  } else if (magnitude >= 0x38800000u) {       // normal: rebias, round to even
    const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    h = (rounded - 0x38000000u) >> 13;
  } else if (magnitude >= 0x33000000u) {       // subnormal: shift the full significand
    const std::uint32_t shift = 126u - (magnitude >> 23);
    const std::uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint32_t half_ulp = 1u << (shift - 1u);
    h = significand >> shift;
    const std::uint32_t rest = significand & ((1u << shift) - 1u);
    if (rest > half_ulp || (rest == half_ulp && (h & 1u))) ++h;
  }
  bits = static_cast<std::uint16_t>(sign | h);
}

constexpr Half::operator float() const {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  std::uint32_t exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
  if (exponent == 31u) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    if (mantissa == 0) return std::bit_cast<float>(sign);
    exponent = 1;
    while ((mantissa & 0x400u) == 0) {
      mantissa <<= 1;
      --exponent;
    }
    mantissa &= 0x3ffu;
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

constexpr BFloat16::BFloat16(float value) {
  const auto f = std::bit_cast<std::uint32_t>(value);
  bits = (f & 0x7fffffffu) > 0x7f800000u ? static_cast<std::uint16_t>((f >> 16) | 0x40u)
                                         : static_cast<std::uint16_t>((f + 0x7fffu + ((f >> 16) & 1u)) >> 16);
}

namespace detail {
/// Complex numbers are recognized by their form: <complex> would be a quarter of the cost of the headers.
template <class T>
concept ComplexNumber = requires(const T& z) {
  typename T::value_type;
  z.real();
  z.imag();
};
template <class T> struct DTypeOf;
template <ComplexNumber T>
struct DTypeOf<T> {
  static constexpr DType value = std::is_same_v<typename T::value_type, double> ? DType::c128 : DType::c64;
  static_assert(sizeof(T) == (value == DType::c128 ? 16 : 8), "use std::complex<float> or std::complex<double>");
};
template <> struct DTypeOf<double> { static constexpr DType value = DType::f64; };
template <> struct DTypeOf<float> { static constexpr DType value = DType::f32; };
template <> struct DTypeOf<Half> { static constexpr DType value = DType::f16; };
template <> struct DTypeOf<BFloat16> { static constexpr DType value = DType::bf16; };
template <> struct DTypeOf<std::int64_t> { static constexpr DType value = DType::i64; };
template <> struct DTypeOf<long long> { static constexpr DType value = DType::i64; };
template <> struct DTypeOf<std::int32_t> { static constexpr DType value = DType::i32; };
template <> struct DTypeOf<std::int16_t> { static constexpr DType value = DType::i16; };
template <> struct DTypeOf<std::int8_t> { static constexpr DType value = DType::i8; };
template <> struct DTypeOf<std::uint8_t> { static constexpr DType value = DType::u8; };
template <> struct DTypeOf<bool> { static constexpr DType value = DType::boolean; };
}  // namespace detail

/// The DType of a C++ element type.
template <class T>
inline constexpr DType dtype_of = detail::DTypeOf<std::remove_cv_t<T>>::value;

/// The type in which sums and products of T are accumulated.
template <class T>
using AccumulateType = std::conditional_t<std::is_same_v<T, double>, double,
                       std::conditional_t<std::is_integral_v<T>, std::int64_t, float>>;

/// Returns the number of bytes of one element.
constexpr int64_t size_of(DType t) {
  constexpr int64_t bytes[kDTypeCount] = {8, 4, 2, 2, 8, 4, 2, 1, 1, 1, 8, 16};
  return bytes[static_cast<int>(t)];
}
/// True for the real floating types, the integer types, and the complex types.
constexpr bool is_floating(DType t) { return t <= DType::bf16; }
constexpr bool is_integral(DType t) { return t >= DType::i64 && t <= DType::u8; }  // bool is not
constexpr bool is_complex(DType t) { return t >= DType::c64; }
/// True for the types of tensors that may require grad.
constexpr bool is_differentiable(DType t) { return is_floating(t) || is_complex(t); }
/// Returns the type of the two parts of a complex type, and any other type itself.
constexpr DType real_type_of(DType t) { return t == DType::c64 ? DType::f32 : t == DType::c128 ? DType::f64 : t; }
/// Returns complex128 for float64 and complex128, else complex64.
constexpr DType complex_type_of(DType t) {
  return t == DType::f64 || t == DType::c128 ? DType::c128 : DType::c64;
}

/// Returns PyTorch's name: "float32", "int64", "bool", ...
std::string_view name_of(DType t);
std::ostream& operator<<(std::ostream& out, DType t);

/// Returns the result type of an operation on two tensors of at least one dimension each, by PyTorch's lattice
/// bool < u8, i8, i16, i32, i64 < f16, bf16 < f32 < f64, where u8 with i8 gives i16 and f16 with bf16 gives f32, and
/// complex64 with float64 gives complex128.
DType promote_types(DType a, DType b);

/// Returns the type that creation functions use when none is given: float32 unless changed. It is thread-local.
DType default_dtype();
/// Sets it for the calling thread; throws DTypeError unless t is a real floating type.
void set_default_dtype(DType t);

namespace detail {
[[noreturn]] void refuse_dtype(const char* op, DType t, const char* accepted);
}

/// Calls `f.template operator()<T>()` with the C++ type of `t`, a real floating type, and returns its result. Throws
/// DTypeError that names `op` for other types.
template <class F>
decltype(auto) dispatch_floating(DType t, const char* op, F&& f) {
  switch (t) {
    case DType::f64: return f.template operator()<double>();
    case DType::f32: return f.template operator()<float>();
    case DType::f16: return f.template operator()<Half>();
    case DType::bf16: return f.template operator()<BFloat16>();
    default: detail::refuse_dtype(op, t, "floating-point types");
  }
}

/// As dispatch_floating, for integer types too.
template <class F>
decltype(auto) dispatch_numeric(DType t, const char* op, F&& f) {
  switch (t) {
    case DType::i64: return f.template operator()<std::int64_t>();
    case DType::i32: return f.template operator()<std::int32_t>();
    case DType::i16: return f.template operator()<std::int16_t>();
    case DType::i8: return f.template operator()<std::int8_t>();
    case DType::u8: return f.template operator()<std::uint8_t>();
    case DType::boolean: detail::refuse_dtype(op, t, "numeric types");
    default: return dispatch_floating(t, op, static_cast<F&&>(f));
  }
}

/// As dispatch_floating, for integer types and bool too; complex types throw.
template <class F>
decltype(auto) dispatch_all(DType t, const char* op, F&& f) {
  if (t == DType::boolean) return f.template operator()<bool>();
  return dispatch_numeric(t, op, static_cast<F&&>(f));
}

/// As dispatch_floating, but for integer types alone.
template <class F>
decltype(auto) dispatch_integral(DType t, const char* op, F&& f) {
  switch (t) {
    case DType::i64: return f.template operator()<std::int64_t>();
    case DType::i32: return f.template operator()<std::int32_t>();
    case DType::i16: return f.template operator()<std::int16_t>();
    case DType::i8: return f.template operator()<std::int8_t>();
    case DType::u8: return f.template operator()<std::uint8_t>();
    default: detail::refuse_dtype(op, t, "integer types");
  }
}

}  // namespace levin
