#include "src/collectives/vector_sum.h"

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "distributed/src/collectives/vector_sum.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace levin::distributed::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void add(T* into, const T* from, std::size_t count) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const auto a = hn::Add(hn::LoadU(d, into + i), hn::LoadU(d, from + i));
    const auto b = hn::Add(hn::LoadU(d, into + i + lanes), hn::LoadU(d, from + i + lanes));
    hn::StoreU(a, d, into + i);
    hn::StoreU(b, d, into + i + lanes);
  }
  for (; i < count; ++i) into[i] += from[i];
}

void add_f32(float* into, const float* from, std::size_t count) { add(into, from, count); }
void add_f64(double* into, const double* from, std::size_t count) { add(into, from, count); }

void add_f16(Half* into, const Half* from, std::size_t count) {
  std::size_t i = 0;
#if HWY_TARGET <= HWY_AVX2  // lower targets have no instruction that rounds to nearest even
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, hn::ScalableTag<float>> halves;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    auto* const to = reinterpret_cast<hwy::float16_t*>(into + i);
    const auto own = hn::PromoteTo(d, hn::LoadU(halves, to));
    const auto other = hn::PromoteTo(d, hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(from + i)));
    hn::StoreU(hn::DemoteTo(halves, hn::Add(own, other)), halves, to);
  }
#endif
  for (; i < count; ++i) into[i] = Half(into[i] + from[i]);
}

}  // namespace levin::distributed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::distributed {

HWY_EXPORT(add_f32);
HWY_EXPORT(add_f64);
HWY_EXPORT(add_f16);

bool add_into(DType dtype, void* into, const void* from, std::size_t count) {
  if (dtype == DType::f32) {
    HWY_DYNAMIC_DISPATCH(add_f32)(static_cast<float*>(into), static_cast<const float*>(from), count);
  } else if (dtype == DType::f64) {
    HWY_DYNAMIC_DISPATCH(add_f64)(static_cast<double*>(into), static_cast<const double*>(from), count);
  } else if (dtype == DType::f16) {
    HWY_DYNAMIC_DISPATCH(add_f16)(static_cast<Half*>(into), static_cast<const Half*>(from), count);
  } else {
    return false;
  }
  return true;
}

}  // namespace levin::distributed
#endif
