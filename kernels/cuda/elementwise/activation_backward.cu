// The gradients of the activations that elementwise_rows.h lists.

#include "kernels/cuda/elementwise/formulas.cuh"
#include "kernels/cuda/elementwise/launcher.cuh"

namespace levin::kernels::cuda {

namespace elementwise::formula {
#define LEVIN_ACTIVATION_ROW(name, types, flops, text, saved, slope_flops, slope, second) \
  LEVIN_FORMULA(name##_backward, (C g, [[maybe_unused]] C saved, const Parameters<C>& p), slope)
#include <levin/kernels/elementwise_rows.h>
}  // namespace elementwise::formula

#define LEVIN_ACTIVATION_ROW(name, ...) LEVIN_RUN_ROW(BinaryArgs, run_binary, name##_backward, floating)
#include <levin/kernels/elementwise_rows.h>

}  // namespace levin::kernels::cuda
