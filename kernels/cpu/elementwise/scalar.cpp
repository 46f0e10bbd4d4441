// Rows in plain loops over single values: integers and bool, which wrap around on overflow, and functions of the
// standard library.

#include "kernels/cpu/elementwise/dispatch.h"
#include "kernels/src/integer_math.h"
#include "kernels/src/special_functions.h"

#include <cmath>
#include <limits>
#include <string>

namespace levin::kernels::cpu {

namespace {

namespace math {
using namespace integer_math;
using integer_math::pow;
using std::pow;

template <class C>
C polygamma(C n, C x) {
  return static_cast<C>(special::polygamma(static_cast<double>(n), static_cast<double>(x)));
}
}  // namespace math
using integer_math::floored_quotient;
using integer_math::floored_remainder;

template <class T>
T saturated(double p) {
  constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  return p <= static_cast<double>(low) ? low : p >= static_cast<double>(high) ? high : static_cast<T>(p);
}

// Bounds have the operand's type; a factor is 64 bits wide, of which only the low ones matter.
template <class Op, class T>
void unary_row(const Row& r) {
  const T* const x = static_cast<const T*>(r.in[0]);
  const T p0 = saturated<T>(r.p0), p1 = saturated<T>(r.p1);
  for (int64_t i = 0; i < r.n; ++i) static_cast<T*>(r.out)[i] = Op::call(x[i * r.step[0]], p0, p1);
}

template <class Op, class T, std::size_t... I>
void row(const Row& r) {
  T* const out = static_cast<T*>(r.out);
  const T* const in[] = {static_cast<const T*>(r.in[I])...};
  const int64_t step[] = {r.step[I]...};
  const auto p0 = saturated<std::int64_t>(r.p0);
  for (int64_t i = 0, n = r.n; i < n; ++i) out[i] = Op::call(in[I][i * step[I]]..., p0);
}

[[noreturn]] void refuse_zero(const char* op) {
  throw ValueError(std::string("[") + op + "] an integer was divided by zero; convert to a floating type.");
}

template <class Op>
constexpr Rows unary_rows() {
  return {.i64 = unary_row<Op, std::int64_t>, .i32 = unary_row<Op, std::int32_t>, .i16 = unary_row<Op, std::int16_t>,
          .i8 = unary_row<Op, std::int8_t>, .u8 = unary_row<Op, std::uint8_t>};
}

template <class Op, bool with_bool, std::size_t... I>
constexpr Rows rows() {
  Rows result{.i64 = row<Op, std::int64_t, I...>, .i32 = row<Op, std::int32_t, I...>,
              .i16 = row<Op, std::int16_t, I...>, .i8 = row<Op, std::int8_t, I...>, .u8 = row<Op, std::uint8_t, I...>};
  if constexpr (with_bool) result.boolean = row<Op, bool, I...>;
  return result;
}

template <class Op>
constexpr Rows kFloatingRows{.f32 = row<Op, float, 0, 1>, .f64 = row<Op, double, 0, 1>};
template <class Op>
constexpr Rows kNumericRows = rows<Op, false, 0, 1>();
template <class Op>
constexpr Rows kBitRows = rows<Op, true, 0, 1>();

}  // namespace

#define LEVIN_UNARY_floating(name, formula)
#define LEVIN_UNARY_rounding(name, formula)
#define LEVIN_UNARY_numeric(name, formula)                                                     \
  namespace {                                                                                  \
  struct name##_formula {                                                                      \
    template <class C>                                                                         \
    static C call(C x, [[maybe_unused]] C p0, [[maybe_unused]] C p1) {                         \
      return static_cast<C>(formula);                                                          \
    }                                                                                          \
  };                                                                                           \
  }                                                                                            \
  constinit const Rows name##_integers = unary_rows<name##_formula>();

#define LEVIN_BINARY_FORMULA(name, check, formula)                                             \
  namespace {                                                                                  \
  struct name##_formula {                                                                      \
    template <class C>                                                                         \
    static C call(C a, C b, [[maybe_unused]] std::int64_t p0) {                                \
      check;                                                                                   \
      return static_cast<C>(formula);                                                          \
    }                                                                                          \
  };                                                                                           \
  }
#define LEVIN_BINARY(name, with_bool, check, formula) \
  LEVIN_BINARY_FORMULA(name, check, formula)          \
  constinit const Rows name##_integers = rows<name##_formula, with_bool, 0, 1>();
#define LEVIN_BINARY_floating(name, formula)
#define LEVIN_BINARY_numeric(name, formula) LEVIN_BINARY(name, false, (void)0, formula)
#define LEVIN_BINARY_division(name, formula) LEVIN_BINARY(name, false, if (b == 0) refuse_zero(#name), formula)
#define LEVIN_BINARY_all(name, formula) LEVIN_BINARY(name, true, (void)0, formula)

#define LEVIN_TERNARY_floating(name, formula)
#define LEVIN_TERNARY_numeric(name, formula)                                                   \
  namespace {                                                                                  \
  struct name##_formula {                                                                      \
    template <class C>                                                                         \
    static C call(C a, C b, C c, [[maybe_unused]] std::int64_t p0) {                           \
      return static_cast<C>(formula);                                                          \
    }                                                                                          \
  };                                                                                           \
  }                                                                                            \
  constinit const Rows name##_integers = rows<name##_formula, false, 0, 1, 2>();

#define LEVIN_UNARY_ROW(name, types, flops, formula, ...) LEVIN_UNARY_##types(name, formula)
#define LEVIN_ACTIVATION_ROW(name, types, flops, formula, ...) LEVIN_UNARY_##types(name, formula)
#define LEVIN_BINARY_ROW(name, types, flops, formula) LEVIN_BINARY_##types(name, formula)
#define LEVIN_TERNARY_ROW(name, types, flops, formula) LEVIN_TERNARY_##types(name, formula)
#include <levin/kernels/elementwise_rows.h>

#define LEVIN_BITWISE_ROW(name, formula)                                                       \
  LEVIN_BINARY_FORMULA(name, (void)0, formula)                                                 \
  static void name(const BinaryArgs& a, Stream&) { run_binary(#name, a, kNoRows, kBitRows<name##_formula>); }
#define LEVIN_SCALAR_floating(name) kNoRows
#define LEVIN_SCALAR_numeric(name) kNumericRows<name##_formula>
#define LEVIN_SCALAR_ROW(name, types, flops, formula)                                          \
  LEVIN_BINARY_FORMULA(name, (void)0, formula)                                                 \
  static void name(const BinaryArgs& a, Stream&) {                                             \
    run_binary(#name, a, kFloatingRows<name##_formula>, LEVIN_SCALAR_##types(name));           \
  }
#include <levin/kernels/elementwise_rows.h>

}  // namespace levin::kernels::cpu

namespace levin::kernels {
#define LEVIN_BITWISE_ROW(name, ...) LEVIN_KERNEL(BinaryArgs, name, cpu::name);
#define LEVIN_SCALAR_ROW(name, ...) LEVIN_KERNEL(BinaryArgs, name, cpu::name);
#include <levin/kernels/elementwise_rows.h>
}  // namespace levin::kernels
