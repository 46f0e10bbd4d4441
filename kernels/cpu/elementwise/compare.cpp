// Comparisons, logical operations and where: plain loops, which compilers vectorise well enough for memory-bound work.

#include "kernels/cpu/elementwise/dispatch.h"
#include "kernels/src/table.h"

#include <cmath>

namespace levin::kernels {

namespace cpu {

namespace {

struct Equal {
  template <class T>
  static bool test(T a, T b) { return a == b; }
};
struct NotEqual {
  template <class T>
  static bool test(T a, T b) { return a != b; }
};
struct Less {
  template <class T>
  static bool test(T a, T b) { return a < b; }
};
struct LessEqual {
  template <class T>
  static bool test(T a, T b) { return a <= b; }
};
struct Greater {
  template <class T>
  static bool test(T a, T b) { return a > b; }
};
struct GreaterEqual {
  template <class T>
  static bool test(T a, T b) { return a >= b; }
};
struct And {
  template <class T>
  static bool test(T a, T b) { return (a != T{}) & (b != T{}); }
};
struct Or {
  template <class T>
  static bool test(T a, T b) { return (a != T{}) | (b != T{}); }
};
struct Xor {
  template <class T>
  static bool test(T a, T b) { return (a != T{}) != (b != T{}); }
};

template <class Op, class T>
void test_row(const Row& r) {
  bool* out = static_cast<bool*>(r.out);
  const T* a = static_cast<const T*>(r.in[0]);
  const T* b = static_cast<const T*>(r.in[1]);
  const T a0 = *a, b0 = *b;
  if (r.step[0] && r.step[1]) {
    for (int64_t i = 0; i < r.n; ++i) out[i] = Op::test(a[i], b[i]);
  } else if (r.step[0]) {
    for (int64_t i = 0; i < r.n; ++i) out[i] = Op::test(a[i], b0);
  } else {
    for (int64_t i = 0; i < r.n; ++i) out[i] = Op::test(a0, b[i * r.step[1]]);
  }
}

template <class Op>
constexpr Rows kTestRows{.f32 = test_row<Op, float>, .f64 = test_row<Op, double>, .i64 = test_row<Op, std::int64_t>,
                         .i32 = test_row<Op, std::int32_t>, .i16 = test_row<Op, std::int16_t>,
                         .i8 = test_row<Op, std::int8_t>, .u8 = test_row<Op, std::uint8_t>,
                         .boolean = test_row<Op, bool>};

struct IsNan {
  template <class T>
  static bool test(T x) { return x != x; }
};
struct IsInf {
  template <class T>
  static bool test(T x) { return std::abs(x) == std::numeric_limits<T>::infinity(); }
};
struct IsFinite {
  template <class T>
  static bool test(T x) { return std::abs(x) <= std::numeric_limits<T>::max(); }
};
struct Not {
  template <class T>
  static bool test(T x) { return x == T{}; }
};

template <class Op, class T>
void property_row(const Row& r) {
  bool* out = static_cast<bool*>(r.out);
  const T* x = static_cast<const T*>(r.in[0]);
  for (int64_t i = 0; i < r.n; ++i) out[i] = Op::test(x[i * r.step[0]]);
}

template <bool value, class T>
void constant_row(const Row& r) {
  for (int64_t i = 0; i < r.n; ++i) static_cast<bool*>(r.out)[i] = value;
}

/// Rows of floating properties; for integers the answer is fixed.
template <class Op, bool of_integers>
constexpr Rows kPropertyRows{.f32 = property_row<Op, float>,
                             .f64 = property_row<Op, double>,
                             .i64 = constant_row<of_integers, std::int64_t>,
                             .i32 = constant_row<of_integers, std::int32_t>,
                             .i16 = constant_row<of_integers, std::int16_t>,
                             .i8 = constant_row<of_integers, std::int8_t>,
                             .u8 = constant_row<of_integers, std::uint8_t>,
                             .boolean = constant_row<of_integers, bool>};
constexpr Rows kNotRows{.f32 = property_row<Not, float>, .f64 = property_row<Not, double>,
                        .i64 = property_row<Not, std::int64_t>, .i32 = property_row<Not, std::int32_t>,
                        .i16 = property_row<Not, std::int16_t>, .i8 = property_row<Not, std::int8_t>,
                        .u8 = property_row<Not, std::uint8_t>, .boolean = property_row<Not, bool>};

void run_property(const char* op, const UnaryArgs& a, const Rows& rows) {
  const DType t = compute_type(a.x.dtype);
  run_rows(a.out, DType::boolean, {{&a.x, t}}, row_for(op, rows, rows, t));
}

/// Moves bits, so types of one size share a row; it is branchless, since conditions are often random.
template <class T>
void where_row(const Row& r) {
  T* out = static_cast<T*>(r.out);
  const std::uint8_t* c = static_cast<const std::uint8_t*>(r.in[0]);
  const T* a = static_cast<const T*>(r.in[1]);
  const T* b = static_cast<const T*>(r.in[2]);
  const auto choose = [](std::uint8_t condition, T x, T y) {
    const T mask = static_cast<T>(T{0} - static_cast<T>(condition));
    return static_cast<T>(y ^ ((x ^ y) & mask));
  };
  if (r.step[0] && r.step[1] && r.step[2]) {
    for (int64_t i = 0; i < r.n; ++i) out[i] = choose(c[i], a[i], b[i]);
  } else if (r.step[0] && r.step[2]) {
    const T a0 = *a;
    for (int64_t i = 0; i < r.n; ++i) out[i] = choose(c[i], a0, b[i]);
  } else if (r.step[0] && r.step[1]) {
    const T b0 = *b;
    for (int64_t i = 0; i < r.n; ++i) out[i] = choose(c[i], a[i], b0);
  } else {
    for (int64_t i = 0; i < r.n; ++i) out[i] = choose(c[i * r.step[0]], a[i * r.step[1]], b[i * r.step[2]]);
  }
}

void where(const TernaryArgs& a, Stream&) {
  const DType t = a.out.dtype;
  const int64_t size = size_of(t);
  const RowFn row = size == 1 ? where_row<std::uint8_t> : size == 2 ? where_row<std::uint16_t>
                  : size == 4 ? where_row<std::uint32_t> : where_row<std::uint64_t>;
  run_rows(a.out, t, {{&a.a, DType::boolean}, {&a.b, t}, {&a.c, t}}, row);
}

template <class Op>
void compare(const char* op, const BinaryArgs& a) {
  run_test(op, a, kTestRows<Op>);
}

void eq(const BinaryArgs& a, Stream&) { compare<Equal>("eq", a); }
void ne(const BinaryArgs& a, Stream&) { compare<NotEqual>("ne", a); }
void lt(const BinaryArgs& a, Stream&) { compare<Less>("lt", a); }
void le(const BinaryArgs& a, Stream&) { compare<LessEqual>("le", a); }
void gt(const BinaryArgs& a, Stream&) { compare<Greater>("gt", a); }
void ge(const BinaryArgs& a, Stream&) { compare<GreaterEqual>("ge", a); }
void logical_and(const BinaryArgs& a, Stream&) { compare<And>("logical_and", a); }
void logical_or(const BinaryArgs& a, Stream&) { compare<Or>("logical_or", a); }
void logical_xor(const BinaryArgs& a, Stream&) { compare<Xor>("logical_xor", a); }
void logical_not(const UnaryArgs& a, Stream&) { run_property("logical_not", a, kNotRows); }
void isnan(const UnaryArgs& a, Stream&) { run_property("isnan", a, kPropertyRows<IsNan, false>); }
void isinf(const UnaryArgs& a, Stream&) { run_property("isinf", a, kPropertyRows<IsInf, false>); }
void isfinite(const UnaryArgs& a, Stream&) { run_property("isfinite", a, kPropertyRows<IsFinite, true>); }

}  // namespace

}  // namespace cpu

LEVIN_KERNEL(BinaryArgs, eq, cpu::eq);
LEVIN_KERNEL(BinaryArgs, ne, cpu::ne);
LEVIN_KERNEL(BinaryArgs, lt, cpu::lt);
LEVIN_KERNEL(BinaryArgs, le, cpu::le);
LEVIN_KERNEL(BinaryArgs, gt, cpu::gt);
LEVIN_KERNEL(BinaryArgs, ge, cpu::ge);
LEVIN_KERNEL(BinaryArgs, logical_and, cpu::logical_and);
LEVIN_KERNEL(BinaryArgs, logical_or, cpu::logical_or);
LEVIN_KERNEL(BinaryArgs, logical_xor, cpu::logical_xor);
LEVIN_KERNEL(UnaryArgs, logical_not, cpu::logical_not);
LEVIN_KERNEL(UnaryArgs, isnan, cpu::isnan);
LEVIN_KERNEL(UnaryArgs, isinf, cpu::isinf);
LEVIN_KERNEL(UnaryArgs, isfinite, cpu::isfinite);
LEVIN_KERNEL(TernaryArgs, where, cpu::where);

}  // namespace levin::kernels
