// Entry points of the reductions: selection of the strips by type.
#include "kernels/cpu/reduce/reduce.h"
#include "kernels/src/table.h"

#include <levin/kernels/reduce.h>

namespace levin::kernels {

namespace cpu {

namespace {

template <class T>
inline constexpr bool kIsFloating = dtype_of<T> <= DType::bf16;
template <class T>
inline constexpr bool kIsSimd = std::is_same_v<T, float> || std::is_same_v<T, double>;

/// Runs Op on any type; `fast` names the SIMD strips for f32 and f64, if there are any.
template <class Op>
void run(const char* op, const TensorView& out, const TensorView& x, Finish finish,
         Reducer<double> FloatReducers::*fast = nullptr) {
  dispatch_all(x.dtype, op, [&]<class T>() {
    if constexpr (kIsSimd<T>) {
      reduce(out, x, fast ? float_reducers(T()).*fast : kPlainReducer<Op, T, double>, finish);
    } else if constexpr (kIsFloating<T>) {
      reduce(out, x, kPlainReducer<Op, T, double>, finish);
    } else {
      reduce(out, x, kPlainReducer<Op, T, int64_t>, {});
    }
  });
}

template <class Op>
void run_logical(const char* op, const ReduceArgs& a) {
  dispatch_all(a.x.dtype, op, [&]<class T>() { reduce(a.out, a.x, kPlainReducer<Op, T, int64_t>, {}); });
}

template <class Op>
void run_norm(const NormArgs& a, Finish finish, Reducer<double> FloatReducers::*fast = nullptr) {
  dispatch_floating(a.x.dtype, "norm", [&]<class T>() {
    if constexpr (kIsSimd<T>) {
      if (fast) return reduce(a.out, a.x, float_reducers(T()).*fast, finish);
    }
    reduce(a.out, a.x, kPlainReducer<Op, T, double>, finish, a.p);
  });
}

void sum(const SumArgs& a, Stream&) {
  const Finish finish = a.divisor == 1.0 ? Finish{} : Finish{Finish::Kind::divide, a.divisor};
  run<Sum>("sum", a.out, a.x, finish, &FloatReducers::sum);
}
void prod(const ReduceArgs& a, Stream&) { run<Prod>("prod", a.out, a.x, {}); }
void amax(const ReduceArgs& a, Stream&) { run<Max>("amax", a.out, a.x, {}, &FloatReducers::max); }
void amin(const ReduceArgs& a, Stream&) { run<Min>("amin", a.out, a.x, {}, &FloatReducers::min); }
void any(const ReduceArgs& a, Stream&) { run_logical<Any>("any", a); }
void all(const ReduceArgs& a, Stream&) { run_logical<All>("all", a); }

void norm(const NormArgs& a, Stream&) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (a.p == 2.0) return run_norm<SumSquare>(a, {Finish::Kind::square_root}, &FloatReducers::sum_square);
  if (a.p == 1.0) return run_norm<SumAbs>(a, {}, &FloatReducers::sum_abs);
  if (a.p == infinity) return run_norm<MaxAbs>(a, {}, &FloatReducers::max_abs);
  if (a.p == -infinity) return run_norm<MinAbs>(a, {});
  if (a.p == 0.0) return run_norm<CountNonzero>(a, {});
  run_norm<SumPower>(a, {Finish::Kind::power, 1.0 / a.p});
}

}  // namespace

}  // namespace cpu

LEVIN_KERNEL(SumArgs, sum, cpu::sum);
LEVIN_KERNEL(ReduceArgs, prod, cpu::prod);
LEVIN_KERNEL(ReduceArgs, amax, cpu::amax);
LEVIN_KERNEL(ReduceArgs, amin, cpu::amin);
LEVIN_KERNEL(ReduceArgs, any, cpu::any);
LEVIN_KERNEL(ReduceArgs, all, cpu::all);
LEVIN_KERNEL(NormArgs, norm, cpu::norm);

}  // namespace levin::kernels
