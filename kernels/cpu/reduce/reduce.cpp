// Entry points of the reductions: selection of the strips by operation and type.
#include "kernels/cpu/reduce/reduce.h"
#include "kernels/src/table.h"

#include <levin/kernels/reduce.h>

namespace levin::kernels {

namespace cpu {

namespace {

/// Reduces x of type T; float and double have SIMD strips of some operations.
template <class Op, class T>
void run(const TensorView& out, const TensorView& x, const Finish& finish, double p = 0.0) {
  using Acc = reduction::AccumulatorOf<Op, T>;
  if constexpr (std::is_floating_point_v<T> && std::is_same_v<Acc, double>) {
    if (const Reducer<double>* fast = float_reducers(T()).template of<Op>()) return reduce(out, x, *fast, finish);
  }
  reduce(out, x, kPlainReducer<Op, T, Acc>, finish, p);
}

void sum(const SumArgs& a, Stream&) {
  const Finish finish = Finish::division(a.divisor);
  dispatch_all(a.x.dtype, "sum", [&]<class T>() { run<reduction::Sum, T>(a.out, a.x, finish); });
}

template <class Op>
void run_norm(const NormArgs& a) {
  const Finish finish = Finish::root(a.p);
  dispatch_floating(a.x.dtype, "norm", [&]<class T>() { run<Op, T>(a.out, a.x, finish, a.p); });
}

void norm(const NormArgs& a, Stream&) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (a.p == 2.0) return run_norm<reduction::SumSquare>(a);
  if (a.p == 1.0) return run_norm<reduction::SumAbs>(a);
  if (a.p == 0.0) return run_norm<reduction::CountNonzero>(a);
  if (a.p == infinity) return run_norm<reduction::MaxAbs>(a);
  if (a.p == -infinity) return run_norm<reduction::MinAbs>(a);
  run_norm<reduction::PowerSum<>>(a);
}

#define LEVIN_REDUCTION_ROW(name, Op)                                                                    \
  void name(const ReduceArgs& a, Stream&) {                                                              \
    dispatch_all(a.x.dtype, #name, [&]<class T>() { run<reduction::Op, T>(a.out, a.x, {}); });           \
  }
#include <levin/kernels/reduction_rows.h>

}  // namespace

}  // namespace cpu

LEVIN_KERNEL(SumArgs, sum, cpu::sum);
LEVIN_KERNEL(NormArgs, norm, cpu::norm);
#define LEVIN_REDUCTION_ROW(name, ...) LEVIN_KERNEL(ReduceArgs, name, cpu::name);
#include <levin/kernels/reduction_rows.h>

}  // namespace levin::kernels
