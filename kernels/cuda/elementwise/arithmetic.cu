// The operations of two and three tensors that elementwise_rows.h lists.

#include "kernels/cuda/elementwise/formulas.cuh"
#include "kernels/cuda/elementwise/launcher.cuh"

namespace levin::kernels::cuda {

namespace elementwise::formula {
#define LEVIN_BINARY_ROW(name, types, flops, text) LEVIN_FORMULA(name, (C a, C b, const Parameters<C>& p), text)
#define LEVIN_BITWISE_ROW(name, text) LEVIN_FORMULA(name, (C a, C b, const Parameters<C>& p), text)
#define LEVIN_SCALAR_ROW(name, types, flops, text) LEVIN_FORMULA(name, (C a, C b, const Parameters<C>& p), text)
#define LEVIN_TERNARY_ROW(name, types, flops, text) LEVIN_FORMULA(name, (C a, C b, C c, const Parameters<C>& p), text)
#include <levin/kernels/elementwise_rows.h>
}  // namespace elementwise::formula

#define LEVIN_BINARY_ROW(name, types, ...) LEVIN_RUN_ROW(BinaryArgs, run_binary, name, types)
#define LEVIN_BITWISE_ROW(name, ...) LEVIN_RUN_ROW(BinaryArgs, run_binary, name, bits)
#define LEVIN_SCALAR_ROW(name, types, ...) LEVIN_RUN_ROW(BinaryArgs, run_binary, name, types)
#define LEVIN_TERNARY_ROW(name, types, ...) LEVIN_RUN_ROW(TernaryArgs, run_ternary, name, types)
#include <levin/kernels/elementwise_rows.h>

}  // namespace levin::kernels::cuda
