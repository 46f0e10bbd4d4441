// Floored division, powers and angles. A kernel cannot throw: if an integer is divided by zero, the quotient has all
// bits set and the remainder is the dividend, as the hardware's instructions define it. The host knows a divisor that
// is a number, and refuses zero as the CPU does.

#include "kernels/cuda/elementwise/launcher.cuh"
#include "kernels/cuda/elementwise/math.cuh"

namespace levin::kernels::cuda {

namespace elementwise {

namespace formula {
struct atan2 {
  template <class C>
  static __device__ C call(C a, C b, const Parameters<C>&) {
    return math::atan2(a, b);
  }
};
}  // namespace formula

struct FloorDivide {
  template <class C>
  static __device__ C call(C a, C b, const Parameters<C>&) {
    if constexpr (std::is_integral_v<C>) {
      if (b == 0) return static_cast<C>(~std::uint64_t{0});
      if (std::is_signed_v<C> && b == static_cast<C>(-1)) return static_cast<C>(0 - math::bits_of(a));
      const C quotient = static_cast<C>(a / b);
      return static_cast<C>(quotient - (a % b != 0 && math::is_negative(a) != math::is_negative(b)));
    } else {
      if (b == 0) return a / b;
      const C rest = math::fmod(a, b);
      C quotient = (a - rest) / b;
      if (rest != 0 && (b < 0) != (rest < 0)) quotient -= C(1);
      if (quotient == 0) return math::copysign(C(0), a / b);
      const C floored = math::floor(quotient);
      return quotient - floored > C(0.5) ? floored + C(1) : floored;
    }
  }
};

struct Remainder {
  template <class C>
  static __device__ C call(C a, C b, const Parameters<C>&) {
    if constexpr (std::is_integral_v<C>) {
      if (b == 0) return a;
      if (std::is_signed_v<C> && b == static_cast<C>(-1)) return 0;
      const C rest = static_cast<C>(a % b);
      return static_cast<C>(rest != 0 && math::is_negative(rest) != math::is_negative(b) ? rest + b : rest);
    } else {
      const C rest = math::fmod(a, b);
      return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
    }
  }
};

namespace formula {
/// An integer to a negative power is 0, except for 1 and -1.
struct pow {
  template <class C>
  static __device__ C call(C a, C b, const Parameters<C>&) {
    if constexpr (std::is_integral_v<C>) {
      if (math::is_negative(b)) return static_cast<C>(a == 1 ? 1 : a == static_cast<C>(-1) ? (b % 2 != 0 ? -1 : 1) : 0);
      std::uint64_t result = 1, factor = math::bits_of(a);
      for (auto n = math::bits_of(b); n != 0; n >>= 1, factor *= factor)
        if ((n & 1) != 0) result *= factor;
      return static_cast<C>(result);
    } else {
      return math::pow(a, b);
    }
  }
};
}  // namespace formula

void refuse_zero(const char* op, const BinaryArgs& a) {
  if (!is_integral(a.compute) || !a.b.is_number() || a.out.numel() == 0) return;
  if (*number_as(a.b, a.compute).data<std::int64_t>() != 0) return;
  throw ValueError(std::string("[") + op + "] an integer was divided by zero; convert to a floating type.");
}

}  // namespace elementwise

void floor_divide(const BinaryArgs& a, Stream& stream) {
  elementwise::refuse_zero("floor_divide", a);
  elementwise::run_binary<elementwise::FloorDivide, elementwise::Family::numeric>("floor_divide", a, stream);
}
void remainder(const BinaryArgs& a, Stream& stream) {
  elementwise::refuse_zero("remainder", a);
  elementwise::run_binary<elementwise::Remainder, elementwise::Family::numeric>("remainder", a, stream);
}
LEVIN_RUN_ROW(BinaryArgs, run_binary, pow, numeric)
LEVIN_RUN_ROW(BinaryArgs, run_binary, atan2, floating)

}  // namespace levin::kernels::cuda
