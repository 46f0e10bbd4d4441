// The SIMD part of the float convolution, compiled for each target and chosen at run time.
#include "kernels/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/conv_f32.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/conv/pad-inl.h"
#include "kernels/cpu/conv/plane-inl.h"
#include "kernels/cpu/conv/tile-inl.h"
#include "kernels/cpu/conv/winograd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {
const ConvOps<float>& conv_ops_f32() {
  static constexpr ConvOps<float> ops{static_cast<int>(kLanes<float>),
                                     kTileHeight,
                                     &run_row<float>,
                                     &run_weight_tile<float>,
                                     &to_planes<float>,
                                     &add_to<float>,
                                     &plane_result<float>,
                                     &plane_weights<float>,
                                     &pad_lines<float>};
  return ops;
}
const WinogradOps<float>& winograd_ops_f32(int64_t taps) {
  static constexpr WinogradOps<float> two = winograd_transforms<2, float>(), three = winograd_transforms<3, float>(),
                                      five = winograd_transforms<5, float>();
  return taps == 2 ? two : taps == 3 ? three : five;
}
}  // namespace
}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels::cpu {
HWY_EXPORT(conv_ops_f32);
HWY_EXPORT(winograd_ops_f32);

template <>
const ConvOps<float>& conv_ops<float>() {
  return HWY_DYNAMIC_DISPATCH(conv_ops_f32)();
}

const WinogradOps<float>& winograd_ops(int64_t taps) {
  return HWY_DYNAMIC_DISPATCH(winograd_ops_f32)(taps);
}
}  // namespace levin::kernels::cpu
#endif
