// The SIMD part of the double convolution, compiled for each target and chosen at run time.
#include "kernels/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/conv_f64.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/conv/pad-inl.h"
#include "kernels/cpu/conv/plane-inl.h"
#include "kernels/cpu/conv/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {
const ConvOps<double>& conv_ops_f64() {
  static constexpr ConvOps<double> ops{static_cast<int>(kLanes<double>),
                                     kTileHeight,
                                     &run_row<double>,
                                     &run_weight_tile<double>,
                                     &to_planes<double>,
                                     &add_to<double>,
                                     &plane_result<double>,
                                     &plane_weights<double>,
                                     &pad_lines<double>};
  return ops;
}
}  // namespace
}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels::cpu {
HWY_EXPORT(conv_ops_f64);

template <>
const ConvOps<double>& conv_ops<double>() {
  return HWY_DYNAMIC_DISPATCH(conv_ops_f64)();
}
}  // namespace levin::kernels::cpu
#endif
