// The operations of two and three tensors that elementwise_rows.h lists, for floating types: memory-bound.
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/arithmetic.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/elementwise/dispatch.h"
#include "kernels/cpu/elementwise/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
#define LEVIN_BINARY_ROW(name, types, flops, formula) LEVIN_TARGET_BINARY(name, a, b, formula)
#define LEVIN_TERNARY_ROW(name, types, flops, formula) LEVIN_TARGET_TERNARY(name, formula)
#include <levin/kernels/elementwise_rows.h>
}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels {
#define LEVIN_BINARY_ROW(name, types, ...) LEVIN_KERNEL_OF_ROWS(BinaryArgs, run_binary, name, types)
#define LEVIN_TERNARY_ROW(name, types, ...) LEVIN_KERNEL_OF_ROWS(TernaryArgs, run_ternary, name, types)
#include <levin/kernels/elementwise_rows.h>
}  // namespace levin::kernels
#endif
