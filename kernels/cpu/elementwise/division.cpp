// Floored division, powers and angles: scalar loops over the standard library.

#include "kernels/cpu/elementwise/dispatch.h"
#include "kernels/src/table.h"

#include <cmath>

namespace levin::kernels {

namespace cpu {

namespace {

template <class T>
void refuse_zero(T b, const char* op) {
  if (b == 0) throw ValueError(std::string("[") + op + "] an integer was divided by zero; convert to a floating type.");
}

struct FloorDivide {
  template <class T>
  static T call(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (b == 0) return a / b;
      const T mod = std::fmod(a, b);
      T quotient = (a - mod) / b;
      if (mod != 0 && (b < 0) != (mod < 0)) quotient -= 1;
      if (quotient == 0) return std::copysign(T{0}, a / b);
      const T floored = std::floor(quotient);
      return quotient - floored > T{0.5} ? floored + 1 : floored;
    } else {
      refuse_zero(b, "floor_divide");
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(0 - static_cast<std::uint64_t>(a));
      const T quotient = static_cast<T>(a / b);
      return static_cast<T>(quotient - (a % b != 0 && (a < 0) != (b < 0)));
    }
  }
};

struct Remainder {
  template <class T>
  static T call(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      const T mod = std::fmod(a, b);
      return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;
    } else {
      refuse_zero(b, "remainder");
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
      const T mod = static_cast<T>(a % b);
      return static_cast<T>(mod != 0 && (mod < 0) != (b < 0) ? mod + b : mod);
    }
  }
};

struct Pow {
  template <class T>
  static T call(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::pow(a, b);
    } else {
      if (b < 0) return static_cast<T>(a == 1 ? 1 : a == static_cast<T>(-1) ? (b % 2 ? -1 : 1) : 0);
      std::uint64_t result = 1, factor = static_cast<std::uint64_t>(a);
      for (auto n = static_cast<std::uint64_t>(b); n; n >>= 1, factor *= factor)
        if (n & 1) result *= factor;
      return static_cast<T>(result);
    }
  }
};

struct Atan2 {
  template <class T>
  static T call(T y, T x) { return std::atan2(y, x); }
};

template <class Op, class T>
void row(const Row& r) {
  T* out = static_cast<T*>(r.out);
  const T* a = static_cast<const T*>(r.in[0]);
  const T* b = static_cast<const T*>(r.in[1]);
  for (int64_t i = 0; i < r.n; ++i) out[i] = Op::call(a[i * r.step[0]], b[i * r.step[1]]);
}

template <class Op>
constexpr Rows kNumericRows{.f32 = row<Op, float>, .f64 = row<Op, double>, .i64 = row<Op, std::int64_t>,
                            .i32 = row<Op, std::int32_t>, .i16 = row<Op, std::int16_t>, .i8 = row<Op, std::int8_t>,
                            .u8 = row<Op, std::uint8_t>};
constexpr Rows kAtan2Rows{.f32 = row<Atan2, float>, .f64 = row<Atan2, double>};

void floor_divide(const BinaryArgs& a, Stream&) {
  run_binary("floor_divide", a, kNumericRows<FloorDivide>, kNumericRows<FloorDivide>);
}
void remainder(const BinaryArgs& a, Stream&) {
  run_binary("remainder", a, kNumericRows<Remainder>, kNumericRows<Remainder>);
}
void pow(const BinaryArgs& a, Stream&) { run_binary("pow", a, kNumericRows<Pow>, kNumericRows<Pow>); }
void atan2(const BinaryArgs& a, Stream&) { run_binary("atan2", a, kAtan2Rows); }

}  // namespace

}  // namespace cpu

LEVIN_KERNEL(BinaryArgs, floor_divide, cpu::floor_divide);
LEVIN_KERNEL(BinaryArgs, remainder, cpu::remainder);
LEVIN_KERNEL(BinaryArgs, pow, cpu::pow);
LEVIN_KERNEL(BinaryArgs, atan2, cpu::atan2);

}  // namespace levin::kernels
