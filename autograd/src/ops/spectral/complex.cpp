// Complex numbers: views as real numbers and back, and arithmetic composed on these views.

#include "../../errors.h"
#include "../autocast.h"
#include "../region.h"
#include "../values.h"
#include "complex.h"

#include <levin/autograd/ops/complex.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>
#include <levin/core/warning.h>

#include <numbers>

namespace levin {

using namespace ops;

namespace {

void require_complex(const char* op, const Tensor& z) {
  if (!z.is_complex())
    fail<DTypeError>("[{}] x is {}, not complex. Make it complex with x.to(kComplex64) or complex(re, im).", op,
                     z.dtype());
}

void require_parts(const char* op, const Tensor& x) {
  if (x.dtype() != kFloat32 && x.dtype() != kFloat64)
    fail<DTypeError>(
        "[{}] the parts of complex numbers are float32 or float64, not {}. Convert them with x.to(kFloat32).", op,
        x.dtype());
}

/// True if pairs of neighbours can be read as complex numbers where they are.
bool has_pairs(const Tensor& x) {
  if (x.numel() == 0) return true;
  const int last = x.dim() - 1;
  bool even = x.strides()[last] == 1 && x.storage_offset() % 2 == 0;
  for (int d = 0; d < last; ++d) even = even && (x.strides()[d] % 2 == 0 || x.sizes()[d] <= 1);
  return even;
}

Shape halved(const Shape& strides) {
  Shape result(strides.begin(), strides.end() - 1);
  for (int64_t& s : result) s /= 2;
  return result;
}

Tensor recorded(const Tensor& z, const Tensor& x) {
  record("view_as_complex", z, {x}, [](Context&, const Tensor& g) -> Grads { return {view_as_real(g)}; });
  return z;
}

/// Returns the same memory as complex, as a tensor of its own: x is a result that nobody else sees.
Tensor taken(const Tensor& x) {
  return recorded(alias(x, leading(x, 1), halved(x.strides()), x.storage_offset() / 2, complex_type_of(x.dtype())), x);
}

Tensor part(const Tensor& z, int64_t i) { return select(view_as_real(z), -1, i); }

/// Returns the parts of a complex tensor, or of a real one with undefined imaginary part, in one type.
struct Parts {
  Parts(const Tensor& x, DType t) {
    const Tensor typed = levin::to(x, x.is_complex() ? t : real_type_of(t));
    re = levin::real(typed);
    if (x.is_complex()) im = levin::imag(typed);
  }
  Tensor re, im;
};

/// Multiplies or divides z by real numbers.
Tensor scaled(const Tensor& z, const Tensor& x, DType t, Tensor (*op)(const Tensor&, const Tensor&)) {
  return on_parts(to(z, t), [&](const Tensor& parts) { return op(parts, unsqueeze(to(x, real_type_of(t)), -1)); });
}

}  // namespace

Tensor view_as_real(const Tensor& z) {
  require_complex("view_as_real", z);
  if (z.dim() == kMaxDims)
    fail<ShapeError>("[view_as_real] z has {} dimensions, and a tensor has {} at most. Reshape it first.", z.dim(),
                     kMaxDims);
  const Region r = real_region_of(z);
  Tensor x = make_view(z, r.sizes, r.strides, r.offset, real_type_of(z.dtype()));
  record("view_as_real", x, {z}, [](Context&, const Tensor& g) -> Grads { return {as_complex(g)}; });
  return x;
}

Tensor view_as_complex(const Tensor& x) {
  require_parts("view_as_complex", x);
  if (x.dim() == 0 || x.sizes().back() != 2)
    fail<ShapeError>("[view_as_complex] x is {}; its last axis has to hold two parts. Reshape it to (..., 2).",
                     x.sizes());
  if (!has_pairs(x))
    fail<ShapeError>(
        "[view_as_complex] x has strides {} and offset {}; the two parts have to lie side by side at even places. Use "
        "x.clone().",
        x.strides(), x.storage_offset());
  const Tensor z = make_view(x, leading(x, 1), halved(x.strides()), x.storage_offset() / 2, complex_type_of(x.dtype()));
  return recorded(z, x);
}

Tensor complex(const Tensor& re, const Tensor& im) {
  require_parts("complex", re);
  check_same_dtype("complex", {{"re", re}, {"im", im}});
  const Shape sizes = broadcast_shapes(re.sizes(), im.sizes(), "complex");
  return taken(stack({expand(re, sizes), expand(im, sizes)}, -1));
}

Tensor polar(const Tensor& abs, const Tensor& angle) {
  require_parts("polar", abs);
  check_same_dtype("polar", {{"abs", abs}, {"angle", angle}});
  return complex(mul(abs, cos(angle)), mul(abs, sin(angle)));
}

Tensor real(const Tensor& x) { return x.is_complex() ? part(x, 0) : x; }
Tensor imag(const Tensor& z) {
  require_complex("imag", z);
  return part(z, 1);
}
Tensor conj(const Tensor& x) { return x.is_complex() ? complex(part(x, 0), neg(part(x, 1))) : x; }

Tensor angle(const Tensor& x) {
  if (x.is_complex()) return atan2(part(x, 1), part(x, 0));
  // PyTorch: NaN stays NaN, and the slope is 0 everywhere.
  const Tensor y = x.is_floating() ? x : to(x, default_dtype());
  return where(isnan(y), y, mul(to(lt(y, 0), y.dtype()), std::numbers::pi));
}

namespace ops {

TensorView parts_of(const Tensor& x) {
  if (!x.is_complex()) return x.tensor_view();
  const Region r = real_region_of(x);
  return alias(x, r.sizes, r.strides, r.offset, real_type_of(x.dtype())).tensor_view();
}

Tensor as_complex(const Tensor& x) { return taken(has_pairs(x) ? x : contiguous(clone(x))); }

Tensor complex_to(const Tensor& x, DType dtype) {
  const DType part_type = real_type_of(dtype);
  if (x.is_complex() && is_complex(dtype))
    return on_parts(x, [&](const Tensor& parts) { return to(parts, part_type); });
  if (x.is_complex()) {
    warn_once("[to] converting complex numbers to real ones drops their imaginary parts; use real(x) to say so.");
    return to(real(x), dtype);
  }
  const Tensor re = to(x, part_type);
  return complex(re, zeros(x.sizes(), like(re)));
}

Tensor complex_add(const Tensor& a, const Tensor& b, DType t, double factor) {
  const Tensor right = view_as_real(to(b, t));
  return on_parts(to(a, t), [&](const Tensor& left) { return add(left, right, factor); });
}

void complex_fill(const Tensor& z, const Scalar& number) {
  const no_grad guard;
  const Tensor parts = view_as_real(z.detach());
  parts.fill_(0);
  if (number.to<double>() != 0) select(parts, -1, 0).fill_(number);
}

Tensor complex_add(const Tensor& z, const Scalar& number) { return complex(add(real(z), number), imag(z)); }

Tensor complex_mul(const Tensor& a, const Tensor& b, DType t) {
  if (!b.is_complex()) return scaled(a, b, t, mul);
  if (!a.is_complex()) return scaled(b, a, t, mul);
  const Parts x(a, t), y(b, t);
  return complex(sub(mul(x.re, y.re), mul(x.im, y.im)), add(mul(x.re, y.im), mul(x.im, y.re)));
}

Tensor complex_div(const Tensor& a, const Tensor& b, DType t) {
  if (!b.is_complex()) return scaled(a, b, t, div);
  const Parts x(a, t), y(b, t);
  // The larger part is divided out first, so that no square overflows; the result does not depend on it.
  const Tensor larger = unrecorded([&] {
    const Tensor l = maximum(abs(y.re), abs(y.im));
    return masked_fill(l, logical_or(eq(l, 0), isinf(l)), 1);
  });
  const Tensor c = div(y.re, larger), d = div(y.im, larger), norm = mul(add(square(c), square(d)), larger);
  if (!x.im.defined()) return complex(div(mul(x.re, c), norm), div(neg(mul(x.re, d)), norm));
  return complex(div(add(mul(x.re, c), mul(x.im, d)), norm), div(sub(mul(x.im, c), mul(x.re, d)), norm));
}

Tensor complex_rdiv(const Tensor& z, const Scalar& number) {
  return complex_div(full({}, number, {.dtype = real_type_of(z.dtype()), .device = z.device()}), z, z.dtype());
}

Tensor complex_matmul(const Tensor& a, const Tensor& b, DType t) {
  const AutocastOff off;  // as in PyTorch: there is no complex type of 16-bit parts
  const Parts x(a, t), y(b, t);
  const Tensor rr = matmul(x.re, y.re);
  if (!y.im.defined()) return complex(rr, matmul(x.im, y.re));
  if (!x.im.defined()) return complex(rr, matmul(x.re, y.im));
  return complex(sub(rr, matmul(x.im, y.im)), add(matmul(x.re, y.im), matmul(x.im, y.re)));
}

namespace {

/// Computes the modulus, whose gradient z / |z| is 0 at 0.
Tensor modulus(const Tensor& z) {
  const Tensor y = unrecorded([&] { return hypot(real(z), imag(z)); });
  if (Context* c = record("abs", y, {z}, [](Context& k, const Tensor& g) -> Grads {
        const Tensor length = k.saved(1);
        return {mul(k.saved(0), masked_fill(div(g, length), eq(length, 0), 0))};
      }))
    c->save(z).save_output(y);
  return y;
}

}  // namespace

Tensor complex_sum(const Tensor& z, const Shape& axes, bool keepdim, bool mean_of) {
  Shape wrapped = axes.empty() ? Shape{} : wrap_axes(axes, z.dim(), mean_of ? "mean" : "sum");
  for (int d = 0; axes.empty() && d < z.dim(); ++d) wrapped.push_back(d);
  if (wrapped.empty()) return clone(z);
  return on_parts(z, [&](const Tensor& parts) {
    return mean_of ? mean(parts, wrapped, keepdim) : sum(parts, wrapped, keepdim);
  });
}

Tensor complex_unary(const kernels::UnaryKernel& kernel, const Tensor& z) {
  const auto is = [&](const kernels::UnaryKernel& k) { return &kernel == &k; };
  if (is(kernels::abs)) return modulus(z);
  if (is(kernels::neg)) return on_parts(z, [](const Tensor& parts) { return neg(parts); });
  if (is(kernels::square)) return complex_mul(z, z, z.dtype());
  if (is(kernels::reciprocal)) return complex_rdiv(z, 1);
  if (is(kernels::exp)) return polar(exp(real(z)), imag(z));
  levin::detail::refuse_dtype(kernel.name(), z.dtype(), "real types");
}

}  // namespace ops
}  // namespace levin
