// The operations of one tensor that elementwise_rows.h lists, for floating types.
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/unary.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/elementwise/dispatch.h"
#include "kernels/cpu/elementwise/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
#define LEVIN_UNARY_ROW(name, types, flops, formula, ...) LEVIN_TARGET_UNARY(name, formula)
#include <levin/kernels/elementwise_rows.h>
}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels {
#define LEVIN_UNARY_ROW(name, types, ...) LEVIN_KERNEL_OF_ROWS(UnaryArgs, run_unary, name, types)
#include <levin/kernels/elementwise_rows.h>
}  // namespace levin::kernels
#endif
