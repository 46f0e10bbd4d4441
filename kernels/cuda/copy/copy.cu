// Copies with conversion: transposed tiles, packs of 16 bytes, or element by element.

#include "kernels/cuda/elementwise/bits.cuh"
#include "kernels/cuda/transpose/transpose.h"

#include <levin/kernels/copy.h>

namespace levin::kernels::cuda {

void copy(const CopyArgs& a, Stream& stream);

namespace elementwise {

struct Same {
  template <class From, class C>
  static __device__ From call(From x, const Parameters<C>&) {
    return x;
  }
};

/// Runs the conversions that networks use often in packs; returns false for others.
template <class From, class... To>
bool try_conversion(const Call& c, const Plan& plan) {
  return (... || try_packed<Same, ComputeType<To>, Types<To, From>>(c, plan));
}

bool try_conversions(const Call& c, const Plan& plan) {
  return try_conversion<float, __half, __nv_bfloat16, double>(c, plan) ||
         try_conversion<__half, float, __nv_bfloat16>(c, plan) ||
         try_conversion<__nv_bfloat16, float, __half>(c, plan) || try_conversion<double, float>(c, plan) ||
         try_conversion<std::uint8_t, float>(c, plan) || try_conversion<std::int64_t, float>(c, plan) ||
         try_conversion<bool, float, __half, __nv_bfloat16>(c, plan);
}

}  // namespace elementwise

void copy(const CopyArgs& a, Stream& stream) {
  using namespace elementwise;
  if (a.out.numel() == 0) return;
  TensorView out = a.out, x = a.x;
  if (as_bits(out, {&x})) {
    if (try_transpose(out, x, stream)) return;
    return run_bits<Same, UnaryTypes>({"copy", out, {&x}, out.dtype, 0.0, 0.0, stream});
  }
  const Call call{"copy", out, {&x}, compute_type(out.dtype), 0.0, 0.0, stream};
  Plan(out, {&x}).for_each_part([&](const Plan& part) {
    if (!try_conversions(call, part)) run_any_of<Same, UnaryTypes>(call, part);
  });
}

}  // namespace levin::kernels::cuda
