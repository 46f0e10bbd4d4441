// The comparisons, properties and logical operations of elementwise_rows.h, whose results are bool.

#include "kernels/cuda/elementwise/launcher.cuh"
#include "kernels/cuda/elementwise/math.cuh"

#include <levin/kernels/creation.h>

namespace levin::kernels::cuda {

void fill(const FillArgs&, Stream&);

namespace elementwise {

namespace formula {
#define LEVIN_CONDITION(name, operands, text) \
  struct name {                               \
    template <class C>                        \
    static __device__ bool call operands {    \
      return text;                            \
    }                                         \
  };
#define LEVIN_COMPARISON_ROW(name, text) LEVIN_CONDITION(name, (C a, C b, const Parameters<C>&), text)
#define LEVIN_LOGICAL_ROW(name, text) LEVIN_CONDITION(name, (C a, C b, const Parameters<C>&), text)
#define LEVIN_PROPERTY_ROW(name, integers, text) LEVIN_CONDITION(name, (C x, const Parameters<C>&), text)
#include <levin/kernels/elementwise_rows.h>
}  // namespace formula

namespace {

/// The answer for integers and bool.
enum class Integers { never, always, computed };

template <class Op, Integers integers>
void run_property_row(const char* op, const UnaryArgs& a, Stream& stream) {
  if constexpr (integers == Integers::computed) {
    run_property<Op, Family::all>(op, a, stream);
  } else if (is_floating(a.x.dtype)) {
    run_property<Op, Family::floating>(op, a, stream);
  } else {
    fill({a.out, TensorView::number(integers == Integers::always, DType::boolean)}, stream);
  }
}

}  // namespace

}  // namespace elementwise

#define LEVIN_RUN_TEST(name, test, arguments)                                                                \
  void name(const BinaryArgs& a, Stream& stream) {                                                           \
    elementwise::run_test<elementwise::formula::test>(#name, arguments, stream);                             \
  }
#define LEVIN_COMPARISON_ROW(name, ...) LEVIN_RUN_TEST(name, name, a)
#define LEVIN_LOGICAL_ROW(name, ...) LEVIN_RUN_TEST(name, name, a)
#define LEVIN_EXCHANGED_ROW(name, other) LEVIN_RUN_TEST(name, other, a.exchanged())
#define LEVIN_PROPERTY_ROW(name, integers, ...)                                                              \
  void name(const UnaryArgs& a, Stream& stream) {                                                            \
    using elementwise::Integers;                                                                             \
    elementwise::run_property_row<elementwise::formula::name, Integers::integers>(#name, a, stream);         \
  }
#include <levin/kernels/elementwise_rows.h>

}  // namespace levin::kernels::cuda
