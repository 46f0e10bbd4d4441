// The SIMD part of the float GEMM, compiled for each target and chosen at run time.
#include "kernels/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/gemm_f32.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/few_rows-inl.h"
#include "kernels/cpu/gemm/pack-inl.h"
#include "kernels/cpu/gemm/split-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {
const GemmOps<float>& ops_f32() {
  static constexpr GemmOps<float> ops{.lanes = static_cast<int>(kLanes<float>),
                                     .max_height = kTileHeight,
                                     .panel_width = static_cast<int>(kTileVectors * kLanes<float>),
                                     .wide_height = kWideHeight,
                                     .columns_height = kColumnsHeight<float>,
                                     .pack = &pack<float>,
                                     .pack_lines = &pack_lines<float>,
                                     .block = &run_block<float>,
                                     .split = &split_strips,
                                     .few_rows = &run_few_rows<float>};
  return ops;
}
}  // namespace
}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels::cpu {
HWY_EXPORT(ops_f32);

template <>
const GemmOps<float>& gemm_ops<float>() {
  return HWY_DYNAMIC_DISPATCH(ops_f32)();
}

bool is_intel() {
#if defined(__x86_64__)
  static const bool intel = __builtin_cpu_is("intel") != 0;
  return intel;
#else
  return false;
#endif
}

const char* simd_target() {
  const int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  return amx_unit() && (usable & HWY_AVX3) ? "AMX" : hwy::TargetName(usable & -usable);
}
}  // namespace levin::kernels::cpu
#endif
