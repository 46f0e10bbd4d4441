// The SIMD part of the double GEMM, compiled for each target and chosen at run time.
#include "kernels/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/gemm_f64.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/gemm/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {
GemmOps<double> ops_f64() {
  return {static_cast<int>(kLanes<double>), kTileHeight, static_cast<int>(kTileVectors * kLanes<double>), &pack<double>,
          &run_block<double>};
}
}  // namespace
}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels::cpu {
HWY_EXPORT(ops_f64);

template <>
const GemmOps<double>& gemm_ops<double>() {
  static const GemmOps<double> ops = HWY_DYNAMIC_DISPATCH(ops_f64)();
  return ops;
}
}  // namespace levin::kernels::cpu
#endif
