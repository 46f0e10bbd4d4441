// Selection between two values.

#include "kernels/cuda/elementwise/bits.cuh"

namespace levin::kernels::cuda {

namespace elementwise {

struct Where {
  template <class C>
  static __device__ C call(bool condition, C a, C b, const Parameters<C>&) {
    return condition ? a : b;
  }
};
template <class T>
using WhereTypes = Types<T, bool, T, T>;

}  // namespace elementwise

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
