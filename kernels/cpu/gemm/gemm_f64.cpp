// The SIMD part of the double GEMM, compiled for each target and chosen at run time.
#include "kernels/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/gemm_f64.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/gemm/few_rows-inl.h"
#include "kernels/cpu/gemm/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {
const GemmOps<double>& ops_f64() {
  static constexpr GemmOps<double> ops{.lanes = static_cast<int>(kLanes<double>),
                                      .max_height = kTileHeight,
                                      .panel_width = static_cast<int>(kTileVectors * kLanes<double>),
                                      .wide_height = kWideHeight,
                                      .columns_height = kColumnsHeight<double>,
                                      .pack = &pack<double>,
                                      .block = &run_block<double>,
                                      .few_rows = &run_few_rows<double>};
  return ops;
}
}  // namespace
}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels::cpu {
HWY_EXPORT(ops_f64);

template <>
const GemmOps<double>& gemm_ops<double>() {
  return HWY_DYNAMIC_DISPATCH(ops_f64)();
}
}  // namespace levin::kernels::cpu
#endif
