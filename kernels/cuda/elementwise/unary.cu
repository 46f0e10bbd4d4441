// The operations of one tensor that elementwise_rows.h lists. They call the accurate functions, not the hardware's
// approximations: in float all are memory-bound, and the approximations are less accurate than the contract allows.

#include "kernels/cuda/elementwise/launcher.cuh"
#include "kernels/cuda/elementwise/math.cuh"

#include <numbers>

namespace levin::kernels::cuda {

namespace elementwise::formula {
#define LEVIN_UNARY_ROW(name, types, flops, text, ...) LEVIN_FORMULA(name, (C x, const Parameters<C>& p), text)
#include <levin/kernels/elementwise_rows.h>
}  // namespace elementwise::formula

#define LEVIN_UNARY_ROW(name, types, ...) LEVIN_RUN_ROW(UnaryArgs, run_unary, name, types)
#include <levin/kernels/elementwise_rows.h>

}  // namespace levin::kernels::cuda
