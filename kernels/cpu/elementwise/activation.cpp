// The activations that elementwise_rows.h lists and their gradients, for floating types.
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/activation.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/elementwise/dispatch.h"
#include "kernels/cpu/elementwise/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
#define LEVIN_ACTIVATION_ROW(name, types, flops, formula, saved, slope_flops, slope, second) \
  LEVIN_TARGET_UNARY(name, formula)                                                          \
  LEVIN_TARGET_BINARY(name##_backward, g, saved, slope)
#include <levin/kernels/elementwise_rows.h>
}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels {
#define LEVIN_ACTIVATION_ROW(name, types, ...)               \
  LEVIN_KERNEL_OF_ROWS(UnaryArgs, run_unary, name, types)    \
  LEVIN_KERNEL_OF_ROWS(BinaryArgs, run_binary, name##_backward, floating)
#include <levin/kernels/elementwise_rows.h>
}  // namespace levin::kernels
#endif
