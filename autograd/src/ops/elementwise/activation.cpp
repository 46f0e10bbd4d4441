// Activations. Each fused gradient is an operation too: it is linear in the gradient, and its derivative with respect
// to the other operand is composed of public operations, so that gradients of any order work.

#include "../../autograd_meta.h"
#include "../../errors.h"
#include "../autocast.h"
#include "../values.h"
#include "common.h"

#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/trace.h>

#include <limits>
#include <numbers>

namespace levin {

using namespace ops;

namespace {

/// Computes r = g * f'(v), where v is the input or the output of the activation; `second` is the derivative of f' with
/// respect to v, an undefined tensor if that is zero.
struct Slope {
  const char* name;
  const kernels::BinaryKernel& kernel;
  Tensor (*second)(const Tensor& v, double p0, double p1);
};

struct SlopeState {
  const Slope* slope;
  double p0, p1;
};

Tensor apply(const Slope& slope, const Tensor& g, const Tensor& v, double p0, double p1) {
  const DType t = result_type(g, v);
  Tensor r = binary(slope.kernel, slope.name, g, v, t, t, p0, p1);
  if (Context* c = record(slope.name, r, {g, v}, [](Context& k, const Tensor& gg) -> Grads {
        const SlopeState s = k.get<SlopeState>();
        const Tensor value = k.saved(1);
        Grads grads{Tensor(), Tensor()};
        if (k.needs(0)) grads[0] = apply(*s.slope, gg, value, s.p0, s.p1);
        if (k.needs(1)) {
          const Tensor second = s.slope->second(value, s.p0, s.p1);
          if (second.defined()) grads[1] = mul(mul(gg, k.saved(0)), second);
        }
        return grads;
      }))
    c->save(c->needs(1) ? g : Tensor(), v).set(SlopeState{&slope, p0, p1});
  return r;
}

/// True if a result of two tensors can be written to the memory of g, which nobody will read again.
bool can_overwrite(const Tensor& g, const Tensor& v) {
  return !grad_enabled() && !tracing() && is_sole_owner(g) && g.sizes() == v.sizes() && g.dtype() == v.dtype() &&
         g.strides() == v.strides() && g.is_contiguous();
}

Grads slope_backward(Context& k, const Tensor& g) {
  const SlopeState s = k.get<SlopeState>();
  const Tensor v = k.saved(0);
  if (!can_overwrite(g, v)) return {apply(*s.slope, g, v, s.p0, s.p1)};
  launch(s.slope->kernel, g.device(), {g.tensor_view(), g.tensor_view(), v.tensor_view(), g.dtype(), s.p0, s.p1});
  end_in_place(g);
  return {g};
}

struct Activation {
  const kernels::UnaryKernel& kernel;
  Slope slope;
  Saved saved;
};

Tensor activate(const Activation& f, const Tensor& x, double p0 = 0, double p1 = 0) {
  Tensor y = unary(f.kernel, x, floating_type(x.dtype()), p0, p1);
  if (Context* c = record(f.kernel.name(), y, {x}, slope_backward)) {
    save(*c, f.saved, x, y);
    c->set(SlopeState{&f.slope, p0, p1});
  }
  return y;
}

/// Computes exp(-x^2 / 2) / sqrt(2 pi).
Tensor normal_density(const Tensor& x) {
  return mul(exp(mul(square(x), -0.5)), 0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
}

Tensor gelu_second(const Tensor& x) { return mul(normal_density(x), rsub(square(x), 2)); }

Tensor gelu_tanh_second(const Tensor& x) {
  constexpr double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, cubic = 0.044715;
  // f = x (1 + t) / 2 with t = tanh(u): f'' = (1 - t^2) (u' + x u'' / 2 - x t u'^2)
  const Tensor x2 = square(x);
  const Tensor t = tanh(mul(mul(x, scale), add(mul(x2, cubic), 1)));
  const Tensor u1 = mul(add(mul(x2, 3 * cubic), 1), scale), u2 = mul(x, 6 * cubic * scale);
  return mul(rsub(square(t), 1), sub(add(u1, mul(mul(x, u2), 0.5)), mul(mul(x, t), square(u1))));
}

Tensor silu_second(const Tensor& x) {
  const Tensor s = sigmoid(x), slope = mul(s, rsub(s, 1));
  return mul(slope, add(mul(x, rsub(mul(s, 2), 1)), 2));
}

Tensor selu_second(const Tensor& x) {
  constexpr double scale = 1.0507009873554804934193349852946, alpha = 1.6732632423543772848170429916717;
  return masked_fill(mul(exp(x), scale * alpha), gt(x, 0), 0);
}

Tensor mish_second(const Tensor& x) {
  // f = x t with t = tanh(softplus(x)): t' = s (1 - t^2), f'' = 2 t' + x t''
  const Tensor s = sigmoid(x), t = tanh(softplus(x)), rest = rsub(square(t), 1);
  const Tensor bend = sub(mul(s, rsub(s, 1)), mul(mul(t, square(s)), 2));
  return mul(rest, add(mul(s, 2), mul(x, bend)));
}

Tensor softplus_second(const Tensor& x, double beta, double threshold) {
  const Tensor scaled = mul(x, beta), s = sigmoid(scaled);
  return masked_fill(mul(mul(s, rsub(s, 1)), beta), gt(scaled, threshold), 0);
}

Tensor logsigmoid_second(const Tensor& x) {
  const Tensor s = sigmoid(x);
  return neg(mul(s, rsub(s, 1)));
}

// Defines, for each row of elementwise_rows.h, the slope's second derivative and the activation.
#define LEVIN_ACTIVATION_ROW(name, types, flops, formula, saved, slope_flops, slope, second)           \
  Tensor name##_second_derivative([[maybe_unused]] const Tensor& saved, [[maybe_unused]] double p0,    \
                                  [[maybe_unused]] double p1) {                                        \
    return second;                                                                                     \
  }                                                                                                    \
  constexpr Activation name##_activation{kernels::name,                                                \
                                         {#name "_backward", kernels::name##_backward,                 \
                                          name##_second_derivative},                                   \
                                         Saved::saved};
#include <levin/kernels/elementwise_rows.h>

void require_floating(const char* op, const Tensor& x) {
  if (!x.is_floating())
    fail<DTypeError>("[{}] {} has no such function; convert it with x.to(kFloat32).", op, x.dtype());
}

/// Computes an activation that integers do not have.
Tensor activate_floating(const Activation& f, const Tensor& x, double p0 = 0, double p1 = 0) {
  require_floating(f.kernel.name(), x);
  return activate(f, x, p0, p1);
}

/// Returns the activation of this kernel if its gradient needs the result alone, else null.
const Activation* activation_of_result(const kernels::UnaryKernel& kernel) {
  for (const Activation* f : {&relu_activation, &sigmoid_activation, &tanh_activation})
    if (&f->kernel == &kernel) return f;
  return nullptr;
}

/// Writes f(x) over x. The old value keeps the history, but its memory gets the result, which is all that the gradient
/// needs.
void overwrite(const char* name, const Activation& f, const Tensor& x) {
  const bool recorded = begin_in_place(name, x);
  Tensor old;
  if (recorded) {
    old = alias(x, x.sizes(), x.strides(), x.storage_offset());
    if (const Edge edge = gradient_edge(x)) set_history(old, edge.node, edge.output);
  }
  launch(f.kernel, x.device(), {x.tensor_view(), x.tensor_view()});
  end_in_place(x);
  if (!recorded) return;
  Tensor result = alias(x, x.sizes(), x.strides(), x.storage_offset());
  if (Context* c = record(f.kernel.name(), result, {old}, slope_backward))
    c->save_output(result).set(SlopeState{&f.slope, 0, 0});
  adopt_history(name, x, result);
}

/// Computes an activation whose gradient needs the result alone, over x if nobody else holds it.
Tensor activate_value(const Activation& f, const Tensor& x) {
  if (!x.is_floating() || !is_spare(x)) return activate(f, x);
  overwrite(f.kernel.name(), f, x);
  return x;
}

}  // namespace

bool ops::activate_in_place(const char* name, const kernels::UnaryKernel& kernel, const Tensor& x) {
  const Activation* f = activation_of_result(kernel);
  if (!f || tracing() || !x.is_floating()) return false;
  overwrite(name, *f, x);
  return true;
}

Tensor relu(Tensor x) {
  refuse_bool("relu", x.dtype(), "x itself");
  if (!x.is_floating()) return unary(kernels::relu, x, x.dtype());
  return activate_value(relu_activation, x);
}

Tensor leaky_relu(const Tensor& x, double negative_slope) {
  return activate_floating(leaky_relu_activation, x, negative_slope);
}
Tensor elu(const Tensor& x, double alpha) { return activate_floating(elu_activation, x, alpha); }
Tensor selu(const Tensor& x) { return activate_floating(selu_activation, x); }
Tensor hardsigmoid(const Tensor& x) { return activate_floating(hardsigmoid_activation, x); }
Tensor hardswish(const Tensor& x) { return activate_floating(hardswish_activation, x); }
Tensor mish(const Tensor& x) { return activate_floating(mish_activation, x); }
Tensor softsign(const Tensor& x) { return activate_floating(softsign_activation, x); }
Tensor silu(const Tensor& x) { return activate_floating(silu_activation, x); }
Tensor logsigmoid(const Tensor& x) { return activate_floating(logsigmoid_activation, x); }

Tensor gelu(const Tensor& x, Approximate approximate) {
  require_floating("gelu", x);
  return activate(approximate == Approximate::none ? gelu_activation : gelu_tanh_activation, x);
}

Tensor softplus(const Tensor& x, double beta, double threshold) {
  LEVIN_AUTOCAST(float32, softplus, x, beta, threshold);
  return activate_floating(softplus_activation, x, beta, threshold);
}

Tensor sigmoid(Tensor x) { return activate_value(sigmoid_activation, x); }

Tensor tanh(Tensor x) { return activate_value(tanh_activation, x); }

Tensor clamp(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max) {
  if (!min && !max) throw ValueError("[clamp] neither min nor max is given; name one of them.");
  DType t = x.dtype();
  refuse_bool("clamp", t, "logical_and or logical_or");
  if (min) t = min->promote_with(t);
  if (max) t = max->promote_with(t);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double low = min ? min->to<double>() : -infinity, high = max ? max->to<double>() : infinity;
  if (is_floating(t)) return activate(clamp_activation, to(x, t), low, high);
  const bool exact = (!min || is_exact_parameter(*min, t)) && (!max || is_exact_parameter(*max, t));
  if (t == DType::i64 && !exact) {  // narrower integers have a smaller range
    Tensor y = min ? binary(kernels::maximum, x, *min, t, t) : to(x, t);
    return max ? binary(kernels::minimum, y, *max, t, t) : y;
  }
  return unary(kernels::clamp, x, t, low, high);
}

}  // namespace levin
