#pragma once
// Calls the row functions of the instruction set in use with a kernel's arguments.

#include "rows.h"
#include "kernels/src/table.h"

#include <levin/kernels/elementwise.h>

namespace levin::kernels::cpu {

/// Rows of integers and bool, compiled once; kNoRows is for operations on floating types only.
inline constexpr Rows kNoRows{};
#define LEVIN_DECLARE_floating(name)
#define LEVIN_DECLARE_rounding(name)
#define LEVIN_DECLARE_numeric(name) extern const Rows name##_integers;
#define LEVIN_DECLARE_division(name) extern const Rows name##_integers;
#define LEVIN_DECLARE_all(name) extern const Rows name##_integers;
#define LEVIN_UNARY_ROW(name, types, ...) LEVIN_DECLARE_##types(name)
#define LEVIN_ACTIVATION_ROW(name, types, ...) LEVIN_DECLARE_##types(name)
#define LEVIN_BINARY_ROW(name, types, ...) LEVIN_DECLARE_##types(name)
#define LEVIN_TERNARY_ROW(name, types, ...) LEVIN_DECLARE_##types(name)
#include <levin/kernels/elementwise_rows.h>
#define LEVIN_INTEGER_ROWS_floating(name) kNoRows
#define LEVIN_INTEGER_ROWS_rounding(name) kNoRows
#define LEVIN_INTEGER_ROWS_numeric(name) name##_integers
#define LEVIN_INTEGER_ROWS_division(name) name##_integers
#define LEVIN_INTEGER_ROWS_all(name) name##_integers

inline void run_unary(const char* op, const UnaryArgs& a, const Rows& floating, const Rows& other = kNoRows) {
  const DType t = compute_type(a.out.dtype);
  run_rows(a.out, t, {{&a.x, t}}, row_for(op, floating, other, t), a.p0, a.p1);
}

inline void run_binary(const char* op, const BinaryArgs& a, const Rows& floating, const Rows& other = kNoRows) {
  const DType t = compute_type(a.compute);
  run_rows(a.out, t, {{&a.a, t}, {&a.b, t}}, row_for(op, floating, other, t), a.p0, a.p1);
}

/// Runs a row function that tests its operands; out is bool.
inline void run_test(const char* op, const BinaryArgs& a, const Rows& rows) {
  const DType t = compute_type(a.compute);
  run_rows(a.out, DType::boolean, {{&a.a, t}, {&a.b, t}}, row_for(op, rows, rows, t), a.p0, a.p1);
}

inline void run_ternary(const char* op, const TernaryArgs& a, const Rows& floating, const Rows& other = kNoRows) {
  const DType t = compute_type(a.compute);
  run_rows(a.out, t, {{&a.a, t}, {&a.b, t}, {&a.c, t}}, row_for(op, floating, other, t), a.p0);
}

}  // namespace levin::kernels::cpu

// The macros below define, for each row, a formula as a function of vectors and a function that names its rows,
// compiled for every target in namespace HWY_NAMESPACE; and, once outside of it, the row's kernel, which chooses the
// target at run time, and its table.
#define LEVIN_TARGET_UNARY(name, formula)                                                           \
  struct name##_formula {                                                                           \
    template <class D, class V>                                                                     \
    static HWY_INLINE V call(D, V v0, V parameter0, V parameter1) {                                 \
      using C = Number<D>;                                                                          \
      [[maybe_unused]] const C x(v0), p0(parameter0), p1(parameter1);                               \
      return (formula).v;                                                                           \
    }                                                                                               \
  };                                                                                                \
  static const Rows* name##_rows() { return &kRows<name##_formula, 1>; }

#define LEVIN_TARGET_BINARY(name, first, second, formula)                                           \
  struct name##_formula {                                                                           \
    template <class D, class V>                                                                     \
    static HWY_INLINE V call(D, V v0, V v1, V parameter0, V parameter1) {                           \
      using C = Number<D>;                                                                          \
      [[maybe_unused]] const C first(v0), second(v1), p0(parameter0), p1(parameter1);               \
      return (formula).v;                                                                           \
    }                                                                                               \
  };                                                                                                \
  static const Rows* name##_rows() { return &kRows<name##_formula, 2>; }

#define LEVIN_TARGET_TERNARY(name, formula)                                                         \
  struct name##_formula {                                                                           \
    template <class D, class V>                                                                     \
    static HWY_INLINE V call(D, V v0, V v1, V v2, V parameter0, V) {                                \
      using C = Number<D>;                                                                          \
      [[maybe_unused]] const C a(v0), b(v1), c(v2), p0(parameter0);                                 \
      return (formula).v;                                                                           \
    }                                                                                               \
  };                                                                                                \
  static const Rows* name##_rows() { return &kRows<name##_formula, 3>; }

#define LEVIN_KERNEL_OF_ROWS(Args, run, name, types)                                                \
  namespace cpu {                                                                                   \
  HWY_EXPORT(name##_rows);                                                                          \
  static void name(const Args& a, Stream&) {                                                        \
    run(#name, a, *HWY_DYNAMIC_DISPATCH(name##_rows)(), LEVIN_INTEGER_ROWS_##types(name));          \
  }                                                                                                 \
  }                                                                                                 \
  LEVIN_KERNEL(Args, name, cpu::name);
