// The operations of one tensor that elementwise_rows.h lists.

#include "../autocast.h"
#include "../spectral/complex.h"
#include "common.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>

#include <numbers>

namespace levin {

using namespace ops;

namespace {

/// Computes y = f(x), recorded. Integers are converted to default_dtype() if the kernel takes only floating types, and
/// returned unchanged if they would only be rounded.
Tensor unary_operation(const kernels::UnaryKernel& kernel, Types types, Saved saved, const Tensor& x,
                       BackwardFn backward) {
  if (x.is_complex()) [[unlikely]] return complex_unary(kernel, x);
  if (types == Types::numeric) refuse_bool(kernel.name(), x.dtype(), "logical_not, or x.to(kUInt8)");
  if (types == Types::rounding && !x.is_floating()) return clone(x);
  Tensor y = unary(kernel, x, types == Types::floating ? floating_type(x.dtype()) : x.dtype());
  if (Context* c = record(kernel.name(), y, {x}, backward)) save(*c, saved, x, y);
  return y;
}

}  // namespace

#define LEVIN_AUTOCAST_any(name)
#define LEVIN_AUTOCAST_float32(name) LEVIN_AUTOCAST(float32, name, input);
#define LEVIN_SAVED_nothing
#define LEVIN_SAVED_x const Tensor x = context.saved(0);
#define LEVIN_SAVED_y const Tensor y = context.saved(0);

#define LEVIN_UNARY_ROW(name, types, flops, formula, autocast, saved, derivative)            \
  Tensor name(const Tensor& input) {                                                         \
    LEVIN_AUTOCAST_##autocast(name)                                                          \
    return unary_operation(kernels::name, Types::types, Saved::saved, input,                 \
                           []([[maybe_unused]] Context& context, const Tensor& g) -> Grads { \
                             LEVIN_SAVED_##saved                                             \
                             return {derivative};                                            \
                           });                                                               \
  }
#include <levin/kernels/elementwise_rows.h>

}  // namespace levin
