#pragma once
// Operations that move values without computing, by size, so that types of one size share a kernel.

#include "kernels/cuda/elementwise/launcher.cuh"

namespace levin::kernels::cuda::elementwise {

constexpr DType bits_type(DType t) {
  constexpr DType by_size[] = {DType::u8,  DType::u8,  DType::i16, DType::i16, DType::i32,
                               DType::i32, DType::i32, DType::i32, DType::i64};
  return by_size[size_of(t)];
}

/// Changes the types of the operands to the integer of that size if all inputs have the result's type; otherwise
/// returns false and changes nothing. Numbers are converted to the result's type first.
inline bool as_bits(TensorView& out, std::initializer_list<TensorView*> inputs) {
  for (const TensorView* in : inputs)
    if (!in->is_number() && in->dtype != out.dtype) return false;
  for (TensorView* in : inputs) {
    if (in->is_number()) *in = number_as(*in, out.dtype);
    in->dtype = bits_type(out.dtype);
  }
  out.dtype = bits_type(out.dtype);
  return true;
}

template <class Op, template <class> class TypesOf, class S>
void run_bits_of(const Call& c) {
  Plan(c.out, c.inputs).for_each_part([&](const Plan& part) {
    if (!try_packed<Op, S, TypesOf<S>>(c, part)) run_any<Op, S, TypesOf>(c, part);
  });
}

/// Called after as_bits().
template <class Op, template <class> class TypesOf>
void run_bits(const Call& c) {
  if (c.out.numel() == 0) return;
  switch (size_of(c.compute)) {
    case 1:
      return run_bits_of<Op, TypesOf, std::uint8_t>(c);
    case 2:
      return run_bits_of<Op, TypesOf, std::int16_t>(c);
    case 4:
      return run_bits_of<Op, TypesOf, std::int32_t>(c);
    default:
      return run_bits_of<Op, TypesOf, std::int64_t>(c);
  }
}

/// For values of several types, which are converted to the result's.
template <class Op, template <class> class TypesOf>
void run_mixed(const Call& c) {
  if (c.out.numel() == 0) return;
  Plan(c.out, c.inputs).for_each_part([&](const Plan& part) { run_any_of<Op, TypesOf>(c, part); });
}

}  // namespace levin::kernels::cuda::elementwise
