// Arithmetic of two tensors, or of a tensor and a number.

#include "../../errors.h"
#include "../autocast.h"
#include "../spectral/complex.h"
#include "common.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>

#include <cmath>

namespace levin {

using namespace ops;

namespace {

/// Computes a + factor * b under the name of the calling operation.
Tensor add_scaled(const char* op, const Tensor& a, const Tensor& b, double factor) {
  const DType t = result_type(a, b);
  if (is_complex(t)) [[unlikely]] return complex_add(a, b, t, factor);
  Tensor y = binary(kernels::add, op, a, b, t, t, factor);
  if (Context* c = record(op, y, {a, b}, [](Context& k, const Tensor& g) -> Grads {
        const double f = k.get<double>();
        return {k.needs(0) ? g : Tensor(), !k.needs(1) ? Tensor() : f == 1.0 ? g : f == -1.0 ? neg(g) : mul(g, f)};
      }))
    c->set(factor);
  return y;
}

Tensor add_number(const char* op, const Tensor& a, const Scalar& b, double factor) {
  if (a.is_complex()) [[unlikely]] return complex_add(a, factor == 1.0 ? b : Scalar(factor * b.to<double>()));
  const DType t = b.promote_with(a.dtype());
  Tensor y = binary(kernels::add, a, b, t, t, factor);
  record(op, y, {a}, [](Context&, const Tensor& g) -> Grads { return {g}; });
  return y;
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  const DType t = result_type(a, b);
  check_factor("add", alpha, t);
  if (!is_exact_parameter(alpha, t)) return add(a, mul(to(b, t), alpha));
  return add_scaled("add", a, b, alpha.to<double>());
}

Tensor add(const Tensor& a, const Scalar& b) { return add_number("add", a, b, 1.0); }

Tensor sub(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  const DType t = result_type(a, b);
  refuse_bool("sub", t, "logical_xor or logical_not");
  check_factor("sub", alpha, t);
  if (!is_exact_parameter(alpha, t)) return sub(a, mul(to(b, t), alpha));
  return add_scaled("sub", a, b, -alpha.to<double>());
}

Tensor sub(const Tensor& a, const Scalar& b) {
  refuse_bool("sub", b.promote_with(a.dtype()), "logical_xor or logical_not");
  return add_number("sub", a, b, -1.0);
}

Tensor rsub(const Tensor& a, const Scalar& b) {
  if (a.is_complex()) [[unlikely]] return complex_add(neg(a), b);
  const DType t = b.promote_with(a.dtype());
  refuse_bool("rsub", t, "logical_not");
  Tensor y = binary(kernels::add, a, b, t, t, -1.0, true);
  record("rsub", y, {a}, [](Context&, const Tensor& g) -> Grads { return {neg(g)}; });
  return y;
}

Tensor mul(const Tensor& a, const Tensor& b) {
  const DType t = result_type(a, b);
  if (is_complex(t)) [[unlikely]] return complex_mul(a, b, t);
  Tensor y = binary(kernels::mul, "mul", a, b, t, t);
  if (Context* c = record("mul", y, {a, b}, [](Context& k, const Tensor& g) -> Grads {
        return {k.needs(0) ? mul(g, k.saved(1)) : Tensor(), k.needs(1) ? mul(g, k.saved(0)) : Tensor()};
      }))
    c->save(c->needs(1) ? a : Tensor(), c->needs(0) ? b : Tensor());
  return y;
}

Tensor mul(const Tensor& a, const Scalar& b) {
  if (a.is_complex()) [[unlikely]] return on_parts(a, [&](const Tensor& parts) { return mul(parts, b); });
  const DType t = b.promote_with(a.dtype());
  Tensor y = binary(kernels::mul, a, b, t, t);
  if (Context* c =
          record("mul", y, {a}, [](Context& k, const Tensor& g) -> Grads { return {mul(g, k.get<Scalar>())}; }))
    c->set(b);
  return y;
}

Tensor div(const Tensor& a, const Tensor& b) {
  const DType t = floating_type(result_type(a, b));
  if (is_complex(t)) [[unlikely]] return complex_div(a, b, t);
  Tensor y = binary(kernels::div, "div", a, b, t, t);
  if (Context* c = record("div", y, {a, b}, [](Context& k, const Tensor& g) -> Grads {
        const Tensor divisor = k.saved(1);
        return {k.needs(0) ? div(g, divisor) : Tensor(),
                k.needs(1) ? mul(neg(g), div(div(k.saved(0), divisor), divisor)) : Tensor()};
      }))
    c->save(c->needs(1) ? a : Tensor(), b);
  return y;
}

Tensor div(const Tensor& a, const Scalar& b) {
  if (a.is_complex()) [[unlikely]] return on_parts(a, [&](const Tensor& parts) { return div(parts, b); });
  const DType t = floating_type(b.promote_with(a.dtype()));
  Tensor y = binary(kernels::div, a, b, t, t);
  if (Context* c =
          record("div", y, {a}, [](Context& k, const Tensor& g) -> Grads { return {div(g, k.get<Scalar>())}; }))
    c->set(b);
  return y;
}

Tensor rdiv(const Tensor& a, const Scalar& b) {
  if (a.is_complex()) [[unlikely]] return complex_rdiv(a, b);
  LEVIN_AUTOCAST(float32, rdiv, a, b);
  const DType t = floating_type(b.promote_with(a.dtype()));
  Tensor y = binary(kernels::div, a, b, t, t, 1.0, true);
  if (Context* c = record("rdiv", y, {a}, [](Context& k, const Tensor& g) -> Grads {
        const Tensor divisor = k.saved(0);
        return {neg(mul(g, div(rdiv(divisor, k.get<Scalar>()), divisor)))};
      }))
    c->save(a).set(b);
  return y;
}

namespace {

/// Records the operation anyway, so that backward throws instead of passing zeros on.
Tensor refusing_gradient(const kernels::BinaryKernel& kernel, const Tensor& y, std::initializer_list<InputRef> inputs) {
  record(kernel.name(), y, inputs, [](Context&, const Tensor&) -> Grads {
    throw GradError("[floor_divide] it has no gradient; use div, or detach its inputs.");
  });
  return y;
}

}  // namespace

Tensor floor_divide(const Tensor& a, const Tensor& b) {
  const DType t = result_type(a, b);
  refuse_bool("floor_divide", t, "x.to(kInt64)");
  return refusing_gradient(kernels::floor_divide, binary(kernels::floor_divide, "floor_divide", a, b, t, t), {a, b});
}

Tensor floor_divide(const Tensor& a, const Scalar& b) {
  const DType t = b.promote_with(a.dtype());
  refuse_bool("floor_divide", t, "x.to(kInt64)");
  return refusing_gradient(kernels::floor_divide, binary(kernels::floor_divide, a, b, t, t), {a});
}

Tensor remainder(const Tensor& a, const Tensor& b) {
  const DType t = result_type(a, b);
  refuse_bool("remainder", t, "x.to(kInt64)");
  Tensor y = binary(kernels::remainder, "remainder", a, b, t, t);
  if (Context* c = record("remainder", y, {a, b}, [](Context& k, const Tensor& g) -> Grads {
        const auto quotient = [&] { return floor_divide(k.saved(0).detach(), k.saved(1).detach()); };
        return {k.needs(0) ? g : Tensor(), k.needs(1) ? neg(mul(g, quotient())) : Tensor()};
      }))
    c->save(c->needs(1) ? a : Tensor(), c->needs(1) ? b : Tensor());
  return y;
}

Tensor remainder(const Tensor& a, const Scalar& b) {
  const DType t = b.promote_with(a.dtype());
  refuse_bool("remainder", t, "x.to(kInt64)");
  Tensor y = binary(kernels::remainder, a, b, t, t);
  record("remainder", y, {a}, [](Context&, const Tensor& g) -> Grads { return {g}; });
  return y;
}

Tensor pow(const Tensor& base, const Tensor& exponent) {
  LEVIN_AUTOCAST(float32, pow, base, exponent);
  const DType t = result_type(base, exponent);
  refuse_bool("pow", t, "x.to(kInt64)");
  Tensor y = binary(kernels::pow, "pow", base, exponent, t, t);
  if (Context* c = record("pow", y, {base, exponent}, [](Context& k, const Tensor& g) -> Grads {
        // Compute in the result's type: the logarithm of a narrower base would have fewer digits.
        const Tensor b = to(k.saved(0), g.dtype()), e = to(k.saved(1), g.dtype());
        Grads grads{Tensor(), Tensor()};
        if (k.needs(0)) {
          // The slope of the power 0 is 0, even where the lower power is not finite.
          const Tensor lower = pow(b, sub(e, 1)), flat = logical_and(eq(e, 0), logical_not(isfinite(lower)));
          grads[0] = masked_fill(mul(g, mul(e, masked_fill(lower, flat, 0))), flat, 0);
        }
        if (k.needs(1)) {
          // 0 to a positive power stays 0 when the power changes.
          const Tensor flat = logical_and(eq(b, 0), ge(e, 0));
          grads[1] = mul(g, masked_fill(mul(pow(b, e), log(masked_fill(b, flat, 1))), flat, 0));
        }
        return grads;
      }))
    c->save(base, exponent);
  return y;
}

Tensor pow(const Tensor& base, const Scalar& exponent) {
  LEVIN_AUTOCAST(float32, pow, base, exponent);
  const DType t = exponent.promote_with(base.dtype());
  refuse_bool("pow", t, "x.to(kInt64)");
  const double e = exponent.to<double>();
  if (!is_floating(t) && e < 0) {
    fail<ValueError>("[pow] integers to the negative power {} are not integers; use x.to(kFloat32).", e);
  }
  const bool same = t == base.dtype() && is_floating(t);
  Tensor y = same && e == 2.0    ? unary(kernels::square, base, t)
             : same && e == 0.5  ? unary(kernels::sqrt, base, t)
             : same && e == -1.0 ? unary(kernels::reciprocal, base, t)
             : same && e == 3.0 && (t == kFloat32 || t == kFloat64)
                 ? binary(kernels::mul, "pow", base, unary(kernels::square, base, t), t, t)
                 : binary(kernels::pow, base, exponent, t, t);
  if (Context* c = record("pow", y, {base}, [](Context& k, const Tensor& g) -> Grads {
        const double n = k.get<double>();
        const Tensor b = k.saved(0);
        if (n == 0.0) return {zeros_like(g)};
        return {mul(g, n == 1.0 ? ones_like(b) : n == 2.0 ? mul(b, 2.0) : mul(pow(b, n - 1.0), n))};
      }))
    c->save(base).set(e);
  return y;
}

namespace {

/// Returns the gradient for the larger of the two; each gets half where they are equal.
Tensor half_at_ties(const Tensor& g, const Tensor& a, const Tensor& b) { return where(eq(a, b), mul(g, 0.5), g); }

/// Computes the maximum or minimum of the two; `loses` tells where the first one is not the result.
template <Tensor (*loses)(const Tensor&, const Tensor&)>
Tensor extremum_of(const kernels::BinaryKernel& kernel, const Tensor& a, const Tensor& b) {
  const DType t = result_type(a, b);
  Tensor y = binary(kernel, kernel.name(), a, b, t, t);
  if (Context* c = record(kernel.name(), y, {a, b}, [](Context& k, const Tensor& g) -> Grads {
        const Tensor x = k.saved(0), z = k.saved(1), half = half_at_ties(g, x, z);
        return {k.needs(0) ? masked_fill(half, loses(x, z), 0) : Tensor(),
                k.needs(1) ? masked_fill(half, loses(z, x), 0) : Tensor()};
      }))
    c->save(a, b);
  return y;
}

}  // namespace

Tensor maximum(const Tensor& a, const Tensor& b) { return extremum_of<lt>(kernels::maximum, a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return extremum_of<gt>(kernels::minimum, a, b); }

namespace {

/// x / (x^2 + y^2) and y / (x^2 + y^2), 0 at the origin. Both are first divided by the larger magnitude, so that no
/// square overflows or underflows; the result does not depend on that magnitude, which therefore has no gradient.
struct AngleSlopes {
  AngleSlopes(const Tensor& of_y, const Tensor& of_x) {
    Tensor origin;
    {
      no_grad guard;
      const Tensor larger = maximum(abs(of_y), abs(of_x));
      origin = eq(larger, 0);
      scale = masked_fill(larger, logical_or(origin, isinf(larger)), 1);
    }
    y = div(of_y, scale);
    x = div(of_x, scale);
    squares = masked_fill(add(square(y), square(x)), origin, 1);
  }
  Tensor times(const Tensor& g, const Tensor& side) const { return div(div(mul(g, side), squares), scale); }

  Tensor y, x, scale, squares;
};

}  // namespace

Tensor atan2(const Tensor& y, const Tensor& x) {
  LEVIN_AUTOCAST(widest, atan2, y, x);
  const DType t = floating_type(result_type(y, x));
  Tensor angle = binary(kernels::atan2, "atan2", y, x, t, t);
  if (Context* c = record("atan2", angle, {y, x}, [](Context& k, const Tensor& g) -> Grads {
        const AngleSlopes slopes(to(k.saved(0), g.dtype()), to(k.saved(1), g.dtype()));
        return {k.needs(0) ? slopes.times(g, slopes.x) : Tensor(),
                k.needs(1) ? neg(slopes.times(g, slopes.y)) : Tensor()};
      }))
    c->save(y, x);
  return angle;
}

Tensor hypot(const Tensor& a, const Tensor& b) {
  const DType t = floating_type(result_type(a, b));
  Tensor y = binary(kernels::hypot, "hypot", a, b, t, t);
  if (Context* c = record("hypot", y, {a, b}, [](Context& k, const Tensor& g) -> Grads {
        const Tensor length = k.saved(2);
        return {k.needs(0) ? mul(g, div(k.saved(0), length)) : Tensor(),
                k.needs(1) ? mul(g, div(k.saved(1), length)) : Tensor()};
      }))
    c->save(a, b).save_output(y);
  return y;
}

namespace {

Tensor polygamma_of(double n, const Tensor& x) {
  const DType t = floating_type(x.dtype());
  const Tensor order = full({}, n, {.dtype = t, .device = x.device()});
  Tensor y = binary(kernels::polygamma, "polygamma", order, x, t, t);
  if (Context* c = record("polygamma", y, {x}, [](Context& k, const Tensor& g) -> Grads {
        return {mul(g, polygamma_of(k.get<double>() + 1, k.saved(0)))};
      }))
    c->save(x).set(n);
  return y;
}

}  // namespace

Tensor polygamma(int64_t n, const Tensor& x) {
  if (n < 0) fail<ValueError>("[polygamma] n is {}. Give 0 or more.", n);
  return polygamma_of(static_cast<double>(n), x);
}
Tensor digamma(const Tensor& x) { return polygamma_of(0, x); }

Tensor copysign(const Tensor& a, const Tensor& b) {
  const DType t = floating_type(result_type(a, b));
  Tensor y = binary(kernels::copysign, "copysign", a, b, t, t);
  if (Context* c = record("copysign", y, {a, b}, [](Context& k, const Tensor& g) -> Grads {
        if (!k.needs(0)) return {Tensor(), zeros_like(g)};
        const Tensor magnitude = k.saved(0), sign_change = mul(sign(magnitude), copysign(ones_like(g), k.saved(1)));
        return {mul(g, sign_change), k.needs(1) ? zeros_like(g) : Tensor()};
      }))
    c->save(a, b);
  return y;
}

#define LEVIN_BITWISE_ROW(name, ...)                                        \
  Tensor name(const Tensor& a, const Tensor& b) {                           \
    const DType t = bits_type(#name, result_type(a, b));                    \
    return binary(kernels::name, #name, a, b, t, t);                        \
  }                                                                         \
  Tensor name(const Tensor& a, const Scalar& b) {                           \
    const DType t = bits_type(#name, b.promote_with(a.dtype()));            \
    return binary(kernels::name, a, b, t, t);                               \
  }
#include <levin/kernels/elementwise_rows.h>

Tensor bitwise_not(const Tensor& x) {
  const DType t = bits_type("bitwise_not", x.dtype());
  return bitwise_xor(x, t == kBool ? Scalar(true) : Scalar(-1));
}

}  // namespace levin
