// The conditions that elementwise_rows.h lists, and where: plain loops, which compilers vectorise well enough for
// memory-bound work.

#include "kernels/cpu/elementwise/dispatch.h"
#include "kernels/src/table.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace levin::kernels {

namespace cpu {

namespace {

template <class Op, class T>
void test_row(const Row& r) {
  bool* out = static_cast<bool*>(r.out);
  const T* a = static_cast<const T*>(r.in[0]);
  const T* b = static_cast<const T*>(r.in[1]);
  const T a0 = *a, b0 = *b;
  if (r.step[0] && r.step[1]) {
    for (int64_t i = 0; i < r.n; ++i) out[i] = Op::call(a[i], b[i]);
  } else if (r.step[0]) {
    for (int64_t i = 0; i < r.n; ++i) out[i] = Op::call(a[i], b0);
  } else {
    for (int64_t i = 0; i < r.n; ++i) out[i] = Op::call(a0, b[i * r.step[1]]);
  }
}

template <class Op>
constexpr Rows kTestRows{.f32 = test_row<Op, float>, .f64 = test_row<Op, double>, .i64 = test_row<Op, std::int64_t>,
                         .i32 = test_row<Op, std::int32_t>, .i16 = test_row<Op, std::int16_t>,
                         .i8 = test_row<Op, std::int8_t>, .u8 = test_row<Op, std::uint8_t>,
                         .boolean = test_row<Op, bool>};

template <class Op, class T>
void property_row(const Row& r) {
  bool* out = static_cast<bool*>(r.out);
  const T* x = static_cast<const T*>(r.in[0]);
  for (int64_t i = 0; i < r.n; ++i) out[i] = Op::call(x[i * r.step[0]]);
}

template <bool value>
void constant_row(const Row& r) {
  std::fill_n(static_cast<bool*>(r.out), r.n, value);
}

/// The answer for integers and bool.
enum class Integers { never, always, computed };

template <class Op, Integers integers, class T>
constexpr RowFn integer_property_row() {
  if constexpr (integers == Integers::computed) {
    return property_row<Op, T>;
  } else {
    return constant_row<integers == Integers::always>;
  }
}

/// bool is read as bytes, for which compilers vectorise the loop.
template <class Op, Integers integers>
constexpr Rows kPropertyRows{.f32 = property_row<Op, float>,
                             .f64 = property_row<Op, double>,
                             .i64 = integer_property_row<Op, integers, std::int64_t>(),
                             .i32 = integer_property_row<Op, integers, std::int32_t>(),
                             .i16 = integer_property_row<Op, integers, std::int16_t>(),
                             .i8 = integer_property_row<Op, integers, std::int8_t>(),
                             .u8 = integer_property_row<Op, integers, std::uint8_t>(),
                             .boolean = integer_property_row<Op, integers, std::uint8_t>()};

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

namespace condition {

namespace math {
using std::abs;
}

#define LEVIN_TEST(name, formula)                                                          \
  struct name##_formula {                                                                  \
    template <class C>                                                                     \
    static bool call(C a, C b) {                                                           \
      return formula;                                                                      \
    }                                                                                      \
  };                                                                                       \
  void name(const BinaryArgs& a, Stream&) { run_test(#name, a, kTestRows<name##_formula>); }
#define LEVIN_COMPARISON_ROW(name, formula) LEVIN_TEST(name, formula)
#define LEVIN_LOGICAL_ROW(name, formula) LEVIN_TEST(name, formula)
#define LEVIN_EXCHANGED_ROW(name, other)                                                   \
  void name(const BinaryArgs& a, Stream&) { run_test(#name, a.exchanged(), kTestRows<other##_formula>); }
#define LEVIN_PROPERTY_ROW(name, integers, formula)                                        \
  struct name##_formula {                                                                  \
    template <class C>                                                                     \
    static bool call(C x) {                                                                \
      return formula;                                                                      \
    }                                                                                      \
  };                                                                                       \
  void name(const UnaryArgs& a, Stream&) {                                                 \
    run_property(#name, a, kPropertyRows<name##_formula, Integers::integers>);             \
  }
#include <levin/kernels/elementwise_rows.h>

}  // namespace condition

}  // namespace

}  // namespace cpu

#define LEVIN_COMPARISON_ROW(name, ...) LEVIN_KERNEL(BinaryArgs, name, cpu::condition::name);
#define LEVIN_EXCHANGED_ROW(name, ...) LEVIN_KERNEL(BinaryArgs, name, cpu::condition::name);
#define LEVIN_LOGICAL_ROW(name, ...) LEVIN_KERNEL(BinaryArgs, name, cpu::condition::name);
#define LEVIN_PROPERTY_ROW(name, ...) LEVIN_KERNEL(UnaryArgs, name, cpu::condition::name);
#include <levin/kernels/elementwise_rows.h>
LEVIN_KERNEL(TernaryArgs, where, cpu::where);

}  // namespace levin::kernels
