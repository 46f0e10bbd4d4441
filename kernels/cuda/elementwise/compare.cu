// Comparisons and logical operations, with bool results.

#include "kernels/cuda/elementwise/launcher.cuh"

namespace levin::kernels::cuda {

namespace elementwise {

#define LEVIN_TEST(Op, formula)                                   \
  struct Op {                                                     \
    template <class C>                                            \
    static __device__ bool call(C a, C b, const Parameters<C>&) { \
      return formula;                                             \
    }                                                             \
  };
LEVIN_TEST(Equal, a == b)
LEVIN_TEST(NotEqual, a != b)
LEVIN_TEST(Less, a < b)
LEVIN_TEST(LessEqual, a <= b)
LEVIN_TEST(And, a != C(0) && b != C(0))
LEVIN_TEST(Or, a != C(0) || b != C(0))
LEVIN_TEST(Xor, (a != C(0)) != (b != C(0)))
#undef LEVIN_TEST

/// Returns the arguments of b op a instead of a op b.
BinaryArgs swapped(const BinaryArgs& a) {
  BinaryArgs result = a;
  result.a = a.b;
  result.b = a.a;
  return result;
}

}  // namespace elementwise

using elementwise::run_test;

void eq(const BinaryArgs& a, Stream& stream) { run_test<elementwise::Equal>("eq", a, stream); }
void ne(const BinaryArgs& a, Stream& stream) { run_test<elementwise::NotEqual>("ne", a, stream); }
void lt(const BinaryArgs& a, Stream& stream) { run_test<elementwise::Less>("lt", a, stream); }
void le(const BinaryArgs& a, Stream& stream) { run_test<elementwise::LessEqual>("le", a, stream); }
void gt(const BinaryArgs& a, Stream& stream) { run_test<elementwise::Less>("gt", elementwise::swapped(a), stream); }
void ge(const BinaryArgs& a, Stream& stream) {
  run_test<elementwise::LessEqual>("ge", elementwise::swapped(a), stream);
}
void logical_and(const BinaryArgs& a, Stream& stream) { run_test<elementwise::And>("logical_and", a, stream); }
void logical_or(const BinaryArgs& a, Stream& stream) { run_test<elementwise::Or>("logical_or", a, stream); }
void logical_xor(const BinaryArgs& a, Stream& stream) { run_test<elementwise::Xor>("logical_xor", a, stream); }

}  // namespace levin::kernels::cuda
