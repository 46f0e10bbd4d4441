// Rows of integer and bool types, in plain loops: they wrap around where the result does not fit.

#include "kernels/cpu/elementwise/dispatch.h"

#include <algorithm>
#include <limits>

namespace levin::kernels::cpu {

namespace {

/// Arithmetic modulo 2^64 has the right low bits for every narrower type.
template <class T>
constexpr std::uint64_t wide(T x) {
  return static_cast<std::uint64_t>(x);
}

template <class T>
T bound(double p) {
  constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  return p <= static_cast<double>(low) ? low : p >= static_cast<double>(high) ? high : static_cast<T>(p);
}

struct Neg {
  template <class T>
  static T call(T x, double, double) { return static_cast<T>(0 - wide(x)); }
};
struct Abs {
  template <class T>
  static T call(T x, double, double) { return x < 0 ? static_cast<T>(0 - wide(x)) : x; }
};
struct Sign {
  template <class T>
  static T call(T x, double, double) { return static_cast<T>((x > 0) - (x < 0)); }
};
struct Square {
  template <class T>
  static T call(T x, double, double) { return static_cast<T>(wide(x) * wide(x)); }
};
struct Relu {
  template <class T>
  static T call(T x, double, double) { return std::max(x, T{0}); }
};
struct Clamp {
  template <class T>
  static T call(T x, double p0, double p1) { return std::min(std::max(x, bound<T>(p0)), bound<T>(p1)); }
};
struct Add {
  template <class T>
  static T call(T a, T b, double p0, double) {
    return static_cast<T>(wide(a) + wide(static_cast<std::int64_t>(p0)) * wide(b));
  }
};
struct Mul {
  template <class T>
  static T call(T a, T b, double, double) { return static_cast<T>(wide(a) * wide(b)); }
};
struct Maximum {
  template <class T>
  static T call(T a, T b, double, double) { return std::max(a, b); }
};
struct Minimum {
  template <class T>
  static T call(T a, T b, double, double) { return std::min(a, b); }
};
struct Addcmul {
  template <class T>
  static T call(T a, T b, T c, double p0, double) {
    return static_cast<T>(wide(a) + wide(static_cast<std::int64_t>(p0)) * wide(b) * wide(c));
  }
};

template <class Op, class T, std::size_t... I>
void row(const Row& r) {
  T* out = static_cast<T*>(r.out);
  const T* const in[] = {static_cast<const T*>(r.in[I])...};
  for (int64_t i = 0; i < r.n; ++i) out[i] = Op::call(in[I][i * r.step[I]]..., r.p0, r.p1);
}

template <class Op, std::size_t... I>
constexpr Rows rows(RowFn boolean = nullptr) {
  return {.i64 = row<Op, std::int64_t, I...>, .i32 = row<Op, std::int32_t, I...>, .i16 = row<Op, std::int16_t, I...>,
          .i8 = row<Op, std::int8_t, I...>, .u8 = row<Op, std::uint8_t, I...>, .boolean = boolean};
}

void or_row(const Row& r) {
  const bool* const a = static_cast<const bool*>(r.in[0]);
  const bool* const b = static_cast<const bool*>(r.in[1]);
  for (int64_t i = 0; i < r.n; ++i) static_cast<bool*>(r.out)[i] = a[i * r.step[0]] || b[i * r.step[1]];
}

void and_row(const Row& r) {
  const bool* const a = static_cast<const bool*>(r.in[0]);
  const bool* const b = static_cast<const bool*>(r.in[1]);
  for (int64_t i = 0; i < r.n; ++i) static_cast<bool*>(r.out)[i] = a[i * r.step[0]] && b[i * r.step[1]];
}

}  // namespace

constinit const Rows kNoRows{};
constinit const Rows kNegRows = rows<Neg, 0>();
constinit const Rows kAbsRows = rows<Abs, 0>();
constinit const Rows kSignRows = rows<Sign, 0>();
constinit const Rows kSquareRows = rows<Square, 0>();
constinit const Rows kClampRows = rows<Clamp, 0>();
constinit const Rows kReluRows = rows<Relu, 0>();
constinit const Rows kAddRows = rows<Add, 0, 1>(or_row);
constinit const Rows kMulRows = rows<Mul, 0, 1>(and_row);
constinit const Rows kMaximumRows = rows<Maximum, 0, 1>(or_row);
constinit const Rows kMinimumRows = rows<Minimum, 0, 1>(and_row);
constinit const Rows kAddcmulRows = rows<Addcmul, 0, 1, 2>();

}  // namespace levin::kernels::cpu
