// Signs and bounds.

#include "kernels/cuda/elementwise/integer.cuh"
#include "kernels/cuda/elementwise/launcher.cuh"
#include "kernels/cuda/elementwise/math.cuh"

namespace levin::kernels::cuda {

namespace elementwise {

struct Neg {
  template <class C>
  static __device__ C call(C x, const Parameters<C>&) {
    if constexpr (std::is_integral_v<C>) {
      return static_cast<C>(0 - bits_of(x));
    } else {
      return -x;
    }
  }
};
struct Abs {
  template <class C>
  static __device__ C call(C x, const Parameters<C>&) {
    if constexpr (std::is_integral_v<C>) {
      return is_negative(x) ? static_cast<C>(0 - bits_of(x)) : x;
    } else {
      return math::fabs(x);
    }
  }
};
struct Square {
  template <class C>
  static __device__ C call(C x, const Parameters<C>&) {
    if constexpr (std::is_integral_v<C>) {
      return static_cast<C>(bits_of(x) * bits_of(x));
    } else {
      return x * x;
    }
  }
};
LEVIN_FORMULA(Sign, static_cast<C>((x > C(0)) - is_negative(x)))
LEVIN_FORMULA(Relu, is_negative(x) ? C(0) : x)  // NaN stays

/// NaN stays.
struct Clamp {
  template <class C>
  static __device__ C call(C x, const Parameters<C>& p) {
    const auto low = x < p.p0 ? p.p0 : x;
    return static_cast<C>(low > p.p1 ? p.p1 : low);
  }
};

}  // namespace elementwise

LEVIN_UNARY(neg, Neg, numeric)
LEVIN_UNARY(abs, Abs, numeric)
LEVIN_UNARY(sign, Sign, numeric)
LEVIN_UNARY(square, Square, numeric)
LEVIN_UNARY(relu, Relu, numeric)

/// Bounds beyond an integer type's own are moved there.
void clamp(const UnaryArgs& a, Stream& stream) {
  UnaryArgs bounded = a;
  if (is_integral(a.out.dtype)) {
    dispatch_integral(a.out.dtype, "clamp", [&]<class T>() {
      constexpr auto low = static_cast<double>(std::numeric_limits<T>::min());
      constexpr auto high = static_cast<double>(std::numeric_limits<T>::max());
      bounded.p0 = std::clamp(a.p0, low, high);
      bounded.p1 = std::clamp(a.p1, low, high);
    });
  }
  elementwise::run_unary<elementwise::Clamp, elementwise::Family::numeric>("clamp", bounded, stream);
}

}  // namespace levin::kernels::cuda
