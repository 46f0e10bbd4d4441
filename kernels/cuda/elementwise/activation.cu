// The activations that elementwise_rows.h lists.

#include "kernels/cuda/elementwise/formulas.cuh"
#include "kernels/cuda/elementwise/launcher.cuh"

namespace levin::kernels::cuda {

namespace elementwise::formula {
#define LEVIN_ACTIVATION_ROW(name, types, flops, text, ...) LEVIN_FORMULA(name, (C x, const Parameters<C>& p), text)
#include <levin/kernels/elementwise_rows.h>
}  // namespace elementwise::formula

#define LEVIN_ACTIVATION_ROW(name, types, ...) LEVIN_RUN_ROW(UnaryArgs, run_unary, name, types)
#include <levin/kernels/elementwise_rows.h>

}  // namespace levin::kernels::cuda
