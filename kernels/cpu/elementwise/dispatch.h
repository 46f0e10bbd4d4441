#pragma once
// From a kernel's arguments to the rows of the instruction set in use.

#include "rows.h"
#include "kernels/src/table.h"

#include <levin/kernels/elementwise.h>

namespace levin::kernels::cpu {

/// Rows of types other than f32 and f64, compiled once.
extern const Rows kNoRows, kNegRows, kAbsRows, kSignRows, kSquareRows, kClampRows, kReluRows, kAddRows, kMulRows,
    kMaximumRows, kMinimumRows, kAddcmulRows;

inline void run_unary(const char* op, const UnaryArgs& a, const Rows& floating, const Rows& other = kNoRows) {
  const DType t = compute_type(a.out.dtype);
  run_rows(a.out, t, {{&a.x, t}}, row_for(op, floating, other, t), a.p0, a.p1);
}

inline void run_binary(const char* op, const BinaryArgs& a, const Rows& floating, const Rows& other = kNoRows) {
  const DType t = compute_type(a.compute);
  run_rows(a.out, t, {{&a.a, t}, {&a.b, t}}, row_for(op, floating, other, t), a.p0, a.p1);
}

/// out is bool.
inline void run_test(const char* op, const BinaryArgs& a, const Rows& rows) {
  const DType t = compute_type(a.compute);
  run_rows(a.out, DType::boolean, {{&a.a, t}, {&a.b, t}}, row_for(op, rows, rows, t), a.p0, a.p1);
}

inline void run_ternary(const char* op, const TernaryArgs& a, const Rows& floating, const Rows& other = kNoRows) {
  const DType t = compute_type(a.compute);
  run_rows(a.out, t, {{&a.a, t}, {&a.b, t}, {&a.c, t}}, row_for(op, floating, other, t), a.p0);
}

}  // namespace levin::kernels::cpu

// For each operation: a function that names its rows, compiled for every target in namespace HWY_NAMESPACE by
// LEVIN_TARGET_ROWS, and once outside its table, its choice at run time and its kernel.
#define LEVIN_TARGET_ROWS(name, Op, inputs) \
  const Rows* name##_rows() { return &kRows<Op, inputs>; }

#define LEVIN_UNARY_KERNEL(name, other)                                            \
  namespace cpu {                                                                  \
  HWY_EXPORT(name##_rows);                                                         \
  static void name(const UnaryArgs& a, Stream&) {                                  \
    run_unary(#name, a, *HWY_DYNAMIC_DISPATCH(name##_rows)(), other);              \
  }                                                                                \
  }                                                                                \
  LEVIN_KERNEL(UnaryArgs, name, cpu::name);

#define LEVIN_BINARY_KERNEL(name, other)                                           \
  namespace cpu {                                                                  \
  HWY_EXPORT(name##_rows);                                                         \
  static void name(const BinaryArgs& a, Stream&) {                                 \
    run_binary(#name, a, *HWY_DYNAMIC_DISPATCH(name##_rows)(), other);             \
  }                                                                                \
  }                                                                                \
  LEVIN_KERNEL(BinaryArgs, name, cpu::name);

#define LEVIN_TERNARY_KERNEL(name, other)                                          \
  namespace cpu {                                                                  \
  HWY_EXPORT(name##_rows);                                                         \
  static void name(const TernaryArgs& a, Stream&) {                                \
    run_ternary(#name, a, *HWY_DYNAMIC_DISPATCH(name##_rows)(), other);            \
  }                                                                                \
  }                                                                                \
  LEVIN_KERNEL(TernaryArgs, name, cpu::name);
