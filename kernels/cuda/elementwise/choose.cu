// Predicates of one value, and selection between two.

#include "kernels/cuda/elementwise/bits.cuh"
#include "kernels/cuda/elementwise/math.cuh"

#include <levin/kernels/creation.h>

namespace levin::kernels::cuda {

void fill(const FillArgs&, Stream&);

namespace elementwise {

#define LEVIN_PROPERTY(Op, formula)                          \
  struct Op {                                                \
    template <class C>                                       \
    static __device__ bool call(C x, const Parameters<C>&) { \
      return formula;                                        \
    }                                                        \
  };
LEVIN_PROPERTY(IsNan, x != x)
LEVIN_PROPERTY(IsInf, math::fabs(x) == std::numeric_limits<C>::infinity())
LEVIN_PROPERTY(IsFinite, math::fabs(x) <= std::numeric_limits<C>::max())
LEVIN_PROPERTY(Not, x == C(0))
#undef LEVIN_PROPERTY

/// For integers and bool the answer is constant.
template <class Op>
void run_float_property(const char* op, const UnaryArgs& a, bool of_integers, Stream& stream) {
  if (is_floating(a.x.dtype)) {
    run_property<Op, Family::floating>(op, a, stream);
  } else {
    fill({a.out, TensorView::number(of_integers, DType::boolean)}, stream);
  }
}

struct Where {
  template <class C>
  static __device__ C call(bool condition, C a, C b, const Parameters<C>&) {
    return condition ? a : b;
  }
};
template <class T>
using WhereTypes = Types<T, bool, T, T>;

}  // namespace elementwise

void isnan(const UnaryArgs& a, Stream& stream) {
  elementwise::run_float_property<elementwise::IsNan>("isnan", a, false, stream);
}
void isinf(const UnaryArgs& a, Stream& stream) {
  elementwise::run_float_property<elementwise::IsInf>("isinf", a, false, stream);
}
void isfinite(const UnaryArgs& a, Stream& stream) {
  elementwise::run_float_property<elementwise::IsFinite>("isfinite", a, true, stream);
}
void logical_not(const UnaryArgs& a, Stream& stream) {
  elementwise::run_property<elementwise::Not, elementwise::Family::all>("logical_not", a, stream);
}

/// Values of the result's type are moved as bits.
void where(const TernaryArgs& a, Stream& stream) {
  using namespace elementwise;
  TensorView out = a.out, b = a.b, c = a.c;
  if (as_bits(out, {&b, &c})) {
    return run_bits<Where, WhereTypes>({"where", out, {&a.a, &b, &c}, out.dtype, 0.0, 0.0, stream});
  }
  run_mixed<Where, WhereTypes>({"where", out, {&a.a, &b, &c}, compute_type(out.dtype), 0.0, 0.0, stream});
}

}  // namespace levin::kernels::cuda
