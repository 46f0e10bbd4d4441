#pragma once
// How all elementwise kernels run. An operation is a struct with a static function `call(values..., parameters)`. It is
// compiled into two kernels: one for operands of one type that can be traversed in packs of 16 bytes, and one for
// everything else, which locates and converts each element and computes all integers in 64 bits.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/elementwise/element.cuh"

#include <levin/kernels/elementwise.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace levin::kernels::cuda::elementwise {

/// An operation's numbers in the compute type; 64 bits for integers, which need no larger range.
template <class C>
struct Parameters {
  using Value = std::conditional_t<std::is_floating_point_v<C>, C, std::int64_t>;
  Value p0, p1;

  Parameters(double a, double b) : p0(value(a)), p1(value(b)) {}

 private:
  static Value value(double p) {
    using Limits = std::numeric_limits<Value>;
    if constexpr (std::is_integral_v<Value>) {
      if (p >= 0x1p63) return Limits::max();
      if (p < -0x1p63) return Limits::min();
    }
    return static_cast<Value>(p);
  }
};

/// Element types of the result and of the inputs.
template <class Out, class... In>
struct Types {
  /// Number of elements in a pack of 16 bytes of the widest type.
  static constexpr int width = 16 / std::max({static_cast<int>(sizeof(Out)), static_cast<int>(sizeof(In))...});
  static constexpr DType dtypes[1 + sizeof...(In)] = {dtype_of_device<Out>, dtype_of_device<In>...};
  /// The types that numbers are converted to.
  static constexpr DType values[1 + sizeof...(In)] = {dtype_of_device<ComputeType<Out>>,
                                                      dtype_of_device<ComputeType<In>>...};
  using Inputs = std::index_sequence_for<In...>;
};
template <class T>
using UnaryTypes = Types<T, T>;
template <class T>
using BinaryTypes = Types<T, T, T>;
template <class T>
using TernaryTypes = Types<T, T, T, T>;
template <class T>
using PropertyTypes = Types<bool, T>;
template <class T>
using TestTypes = Types<bool, T, T>;

template <class Op, class Out, class C, int Width, class... In>
__device__ inline void store_results(Out* out, const Parameters<C>& p, const Pack<In, Width>&... values) {
  Pack<Out, Width> results;
  LEVIN_PRAGMA_UNROLL
  for (int i = 0; i < Width; ++i) results[i] = element_cast<Out>(Op::call(values[i]..., p));
  pack_at<Width>(out) = results;
}

template <class Op, class C, class Out, class... In, std::size_t... I>
__device__ inline void run_packs(const Operands& o, const Parameters<C>& p, Types<Out, In...>,
                                 std::index_sequence<I...>) {
  constexpr std::uint32_t width = Types<Out, In...>::width;
  const std::uint32_t threads = gridDim.x * blockDim.x;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < o.steps; i += threads) {
    std::int64_t at[1 + sizeof...(In)];
    find_offsets(o, i, at);
    Out* const out = static_cast<Out*>(o.pointers[0]) + at[0];
    const std::uint32_t rest = o.elements - i * width;
    if (rest >= width) {
      store_results<Op>(out, p, load_pack<In, width>(o, static_cast<int>(I) + 1, at[I + 1])...);
    } else {  // Only the last pack can be short. Its own path lets the compiler convert whole packs in pairs.
      LEVIN_PRAGMA_NO_UNROLL
      for (int k = 0; k < static_cast<int>(rest); ++k) {
        out[k] = element_cast<Out>(Op::call(load_of_pack<In>(o, static_cast<int>(I) + 1, at[I + 1], k)..., p));
      }
    }
  }
}

template <class Op, class C, class Out, class... In, std::size_t... I>
__device__ inline void run_elements(const Operands& o, const Parameters<C>& p, Types<Out, In...>,
                                    std::index_sequence<I...>) {
  const std::uint32_t threads = gridDim.x * blockDim.x;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < o.steps; i += threads) {
    std::int64_t at[1 + sizeof...(In)];
    find_offsets(o, i, at);
    store_element<Out>(o, at[0], Op::call(load_element<In>(o, static_cast<int>(I) + 1, at[I + 1])..., p));
  }
}

/// For operands of the types that T names, or numbers; traverses the last axis in packs.
template <class Op, class C, class T>
__global__ void __launch_bounds__(256) elementwise_packed(Operands o, Parameters<C> p) {
  run_packs<Op>(o, p, T{}, typename T::Inputs{});
}

/// For operands of any types, which are converted to those of T, and any strides.
template <class Op, class C, class T>
__global__ void __launch_bounds__(256) elementwise_any(Operands o, Parameters<C> p) {
  run_elements<Op>(o, p, T{}, typename T::Inputs{});
}

/// The types that an operation takes: bits are integers and bool. Rounding of integers is left to the host.
enum class Family { floating, numeric, division, all, bits, rounding = floating };

/// An operation's arguments, for any number of inputs.
struct Call {
  const char* op;
  const TensorView& out;
  std::initializer_list<const TensorView*> inputs;
  DType compute;  ///< the result has this type or bool; f32 for 16-bit floats
  double p0, p1;
  const Stream& stream;
};

template <class Op, class C, class T>
bool try_packed(const Call& c, const Plan& plan) {
  if (!plan.has_dtypes(T::dtypes) || !plan.packable(T::width)) return false;
  const Operands o = plan.operands(T::width, T::values, c.compute);
  launch(elementwise_packed<Op, C, T>, {.grid = blocks_for(o.steps), .block = 256, .stream = c.stream}, o,
         Parameters<C>(c.p0, c.p1));
  return true;
}

template <class Op, class C, template <class> class TypesOf>
void run_any(const Call& c, const Plan& plan) {
  const Operands o = plan.operands(1, TypesOf<C>::values, c.compute);
  launch(elementwise_any<Op, C, TypesOf<C>>, {.grid = blocks_for(o.steps), .block = 256, .stream = c.stream}, o,
         Parameters<C>(c.p0, c.p1));
}

template <class Op, template <class> class TypesOf>
void run_any_floating(const Call& c, const Plan& plan) {
  if (c.compute == DType::f64) return run_any<Op, double, TypesOf>(c, plan);
  run_any<Op, float, TypesOf>(c, plan);
}
template <class Op, template <class> class TypesOf>
void run_any_of(const Call& c, const Plan& plan) {
  if (is_floating(c.compute)) return run_any_floating<Op, TypesOf>(c, plan);
  run_any<Op, std::int64_t, TypesOf>(c, plan);
}

/// Runs packs of elements of type S, computed in S or in float.
template <class Op, template <class> class TypesOf, class... S>
bool try_packs_of(const Call& c, const Plan& plan) {
  return (... || (c.compute == dtype_of<ComputeType<S>> && try_packed<Op, ComputeType<S>, TypesOf<S>>(c, plan)));
}

template <class Op, template <class> class TypesOf, Family family>
void run_part(const Call& c, const Plan& plan) {
  constexpr bool takes_bool = family == Family::all || family == Family::bits;
  if constexpr (family != Family::bits) {
    if (try_packs_of<Op, TypesOf, float, __half, __nv_bfloat16, double>(c, plan)) return;
    if (is_floating(c.compute)) return run_any_floating<Op, TypesOf>(c, plan);
  }
  if constexpr (family != Family::floating) {
    if (try_packs_of<Op, TypesOf, std::int64_t, std::int32_t, std::uint8_t>(c, plan)) return;
    if constexpr (takes_bool) {
      if (try_packs_of<Op, TypesOf, bool>(c, plan)) return;
    }
    if (!is_floating(c.compute) && (takes_bool || c.compute != DType::boolean)) {
      return run_any<Op, std::int64_t, TypesOf>(c, plan);
    }
  }
  refuse_type(c.op, c.compute);
}

template <class Op, template <class> class TypesOf, Family family>
void run(const Call& c) {
  if (c.out.numel() == 0) return;
  Plan(c.out, c.inputs).for_each_part([&](const Plan& part) { run_part<Op, TypesOf, family>(c, part); });
}

constexpr DType compute_type(DType t) { return t == DType::f16 || t == DType::bf16 ? DType::f32 : t; }

template <class Op, Family family>
void run_unary(const char* op, const UnaryArgs& a, const Stream& stream) {
  const auto [p0, p1] = bounded_parameters(a);
  run<Op, UnaryTypes, family>({op, a.out, {&a.x}, compute_type(a.out.dtype), p0, p1, stream});
}
/// For bool results computed in x's type.
template <class Op, Family family>
void run_property(const char* op, const UnaryArgs& a, const Stream& stream) {
  run<Op, PropertyTypes, family>({op, a.out, {&a.x}, compute_type(a.x.dtype), a.p0, a.p1, stream});
}
template <class Op, Family family>
void run_binary(const char* op, const BinaryArgs& a, const Stream& stream) {
  if constexpr (family == Family::division) refuse_zero(op, a);
  run<Op, BinaryTypes, family>({op, a.out, {&a.a, &a.b}, compute_type(a.compute), a.p0, a.p1, stream});
}
/// For bool results.
template <class Op>
void run_test(const char* op, const BinaryArgs& a, const Stream& stream) {
  run<Op, TestTypes, Family::all>({op, a.out, {&a.a, &a.b}, compute_type(a.compute), a.p0, a.p1, stream});
}
template <class Op, Family family>
void run_ternary(const char* op, const TernaryArgs& a, const Stream& stream) {
  run<Op, TernaryTypes, family>({op, a.out, {&a.a, &a.b, &a.c}, compute_type(a.compute), a.p0, 0.0, stream});
}

}  // namespace levin::kernels::cuda::elementwise

/// Defines a formula of elementwise_rows.h as an operation; C is the compute type.
#define LEVIN_FORMULA(name, operands, formula)                           \
  struct name {                                                          \
    template <class C>                                                   \
    static __device__ C call operands {                                  \
      [[maybe_unused]] const auto p0 = p.p0, p1 = p.p1;                  \
      return static_cast<C>(formula);                                    \
    }                                                                    \
  };

/// Define the functions that the tables name, in namespace levin::kernels::cuda, from operations in
/// elementwise::formula.
#define LEVIN_RUN_ROW(Args, run, name, family)                                                        \
  void name(const Args& a, Stream& stream) {                                                          \
    elementwise::run<elementwise::formula::name, elementwise::Family::family>(#name, a, stream);      \
  }
