// Conversion of f32 to the 16-bit floats and back.
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/half.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/elementwise/rows.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

// Only from AVX2 on is there an instruction that rounds to even; Half itself rounds to even on every target.
#if HWY_TARGET <= HWY_AVX2
inline constexpr bool kHalfInstructions = true;
#else
inline constexpr bool kHalfInstructions = false;
#endif

void half_to_float(void* out, const void* in, int64_t n) {
  float* to = static_cast<float*>(out);
  const Half* from = static_cast<const Half*>(in);
  int64_t i = 0;
  if constexpr (kHalfInstructions) {
    const Simd<float> d;
    const hn::Rebind<hwy::float16_t, Simd<float>> halves;
    for (; i + kLanes<float> <= n; i += kLanes<float>)
      hn::StoreU(hn::PromoteTo(d, hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(from + i))), d, to + i);
  }
  for (; i < n; ++i) to[i] = from[i];
}

void float_to_half(void* out, const void* in, int64_t n) {
  Half* to = static_cast<Half*>(out);
  const float* from = static_cast<const float*>(in);
  int64_t i = 0;
  if constexpr (kHalfInstructions) {
    const Simd<float> d;
    const hn::Rebind<hwy::float16_t, Simd<float>> halves;
    for (; i + kLanes<float> <= n; i += kLanes<float>)
      hn::StoreU(hn::DemoteTo(halves, hn::LoadU(d, from + i)), halves, reinterpret_cast<hwy::float16_t*>(to + i));
  }
  for (; i < n; ++i) to[i] = Half(from[i]);
}

void bfloat_to_float(void* out, const void* in, int64_t n) {
  float* to = static_cast<float*>(out);
  const BFloat16* from = static_cast<const BFloat16*>(in);
  for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}

void float_to_bfloat(void* out, const void* in, int64_t n) {
  BFloat16* to = static_cast<BFloat16*>(out);
  const float* from = static_cast<const float*>(in);
  for (int64_t i = 0; i < n; ++i) to[i] = BFloat16(from[i]);
}

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels::cpu {

HWY_EXPORT(half_to_float);
HWY_EXPORT(float_to_half);
HWY_EXPORT(bfloat_to_float);
HWY_EXPORT(float_to_bfloat);

ContiguousConvertFn simd_convert_fn(DType to, DType from) {
  if (to == DType::f32 && from == DType::f16) return HWY_DYNAMIC_DISPATCH(half_to_float);
  if (to == DType::f32 && from == DType::bf16) return HWY_DYNAMIC_DISPATCH(bfloat_to_float);
  if (to == DType::f16 && from == DType::f32) return HWY_DYNAMIC_DISPATCH(float_to_half);
  if (to == DType::bf16 && from == DType::f32) return HWY_DYNAMIC_DISPATCH(float_to_bfloat);
  return nullptr;
}

}  // namespace levin::kernels::cpu
#endif
