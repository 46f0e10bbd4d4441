// Matrix products and their gradients.

#include "../errors.h"
#include "autocast.h"
#include "spectral/complex.h"
#include "values.h"

#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/autograd/trace.h>
#include <levin/kernels/copy.h>
#include <levin/kernels/matmul.h>

namespace levin {

using namespace ops;

namespace {

void check_operands(const char* op, const Argument& a, const Argument& b) {
  check_same_dtype(op, {a, b});
  if (a.tensor.dtype() == kBool)
    fail<DTypeError>("[{}] bool matrices have no product; convert them with x.to(kInt32).", op);
  check_same_device(op, a, b);
}

[[noreturn]] void inner_sizes_differ(const char* op, const Tensor& a, const Tensor& b) {
  const bool transposed_fits = b.dim() >= 2 && a.dim() >= 1 && a.sizes().back() == b.sizes().back();
  fail<ShapeError>("[{}] inner sizes differ: a is {}, b is {}.{}", op, a.sizes(), b.sizes(),
                   transposed_fits ? " Transpose b?" : "");
}

void check_matrices(const char* op, const Tensor& a, const Tensor& b) {
  check_operands(op, {"a", a}, {"b", b});
  if (a.dim() != 2 || b.dim() != 2)
    fail<ShapeError>("[{}] two matrices are needed: a is {}, b is {}. Use matmul() for other ranks.", op, a.sizes(),
                     b.sizes());
}

/// Computes a (..., M, K) b (..., K, N) + bias with leading axes broadcast to `lead`; not recorded.
Tensor compute(const Tensor& a, const Tensor& b, const Tensor& bias, const Shape& lead) {
  const int ad = a.dim(), bd = b.dim();
  const auto view_over = [&](const Tensor& x, int64_t rows, int64_t columns) {
    TensorView v = x.tensor_view();
    if (x.dim() == 2 && lead.empty()) return v;
    const Shape target = joined(lead, {rows, columns});
    v.strides = broadcast_strides(v.sizes, v.strides, target, "matmul");
    v.sizes = target;
    return v;
  };
  Tensor y = empty(joined(lead, {a.sizes()[ad - 2], b.sizes()[bd - 1]}), like(a));
  launch(kernels::matmul, a.device(),
         {y.tensor_view(), view_over(a, a.sizes()[ad - 2], a.sizes()[ad - 1]),
          view_over(b, b.sizes()[bd - 2], b.sizes()[bd - 1]), view_of(bias)});
  return y;
}

/// Multiplies matrices or batches; both inputs have two or more dimensions.
Tensor batched(const char* op, const Tensor& a, const Tensor& b) {
  const int ad = a.dim(), bd = b.dim();
  if (a.sizes()[ad - 1] != b.sizes()[bd - 2]) inner_sizes_differ(op, a, b);
  const Shape lead = ad == 2 && bd == 2 ? Shape{} : broadcast_shapes(leading(a, 2), leading(b, 2), op);
  Tensor y = compute(a, b, {}, lead);
  LEVIN_TRACE("matmul", {a, b}, {y});
  if (Context* c = record("matmul", y, {a, b}, [](Context& k, const Tensor& g) -> Grads {
        return {k.needs(0) ? matmul(g, k.saved(1).transpose(-2, -1)) : Tensor(),
                k.needs(1) ? matmul(k.saved(0).transpose(-2, -1), g) : Tensor()};
      }))
    c->save(c->needs(1) ? a : Tensor(), c->needs(0) ? b : Tensor());
  return y;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (any_complex(a, b)) [[unlikely]] return complex_matmul(a, b, promote_types(a.dtype(), b.dtype()));
  LEVIN_AUTOCAST(lower, matmul, a, b);
  LEVIN_TRACE_CALL(matmul(a, b), "matmul", {a, b});
  check_operands("matmul", {"a", a}, {"b", b});
  const int ad = a.dim(), bd = b.dim();
  if (ad == 0 || bd == 0)
    fail<ShapeError>("[matmul] both need a dimension at least: a is {}, b is {}. Use * for numbers.", a.sizes(),
                     b.sizes());
  if (ad == 1 && bd == 1) return squeeze(squeeze(matmul(unsqueeze(a, 0), unsqueeze(b, 1)), 1), 0);
  if (ad == 1) return squeeze(matmul(unsqueeze(a, 0), b), -2);
  if (bd == 1) {
    if (a.sizes().back() != b.sizes()[0]) inner_sizes_differ("matmul", a, b);
    return squeeze(matmul(a, unsqueeze(b, 1)), -1);
  }
  if (ad > 2 && bd == 2 && a.is_contiguous()) {  // one tall matrix instead of many
    if (a.sizes().back() != b.sizes()[0]) inner_sizes_differ("matmul", a, b);
    Shape sizes = a.sizes();
    sizes[ad - 1] = b.sizes()[1];
    const int64_t rows = leading(a, 1).numel();
    return reshape(batched("matmul", reshape(a, {rows, a.sizes().back()}), b), sizes);
  }
  return batched("matmul", a, b);
}

Tensor mm(const Tensor& a, const Tensor& b) {
  LEVIN_AUTOCAST(lower, mm, a, b);
  check_matrices("mm", a, b);
  return batched("mm", a, b);
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  LEVIN_AUTOCAST(lower, bmm, a, b);
  check_operands("bmm", {"a", a}, {"b", b});
  if (a.dim() != 3 || b.dim() != 3 || a.sizes()[0] != b.sizes()[0])
    fail<ShapeError>("[bmm] two batches of the same size are needed: a is {}, b is {}.", a.sizes(), b.sizes());
  return batched("bmm", a, b);
}

namespace {

struct AddmmFactors {
  double beta, alpha;
};

Tensor scaled_by(const Tensor& x, double factor) { return factor == 1.0 ? x : mul(x, factor); }

/// Computes beta bias + alpha a b in the accumulators of the product, rounded once. All have one floating type.
Tensor fused_addmm(const Tensor& bias, const Tensor& a, const Tensor& b, const AddmmFactors& f) {
  const Shape sizes{a.sizes()[0], b.sizes()[1]};
  Tensor y;
  if (bias.dim() == 1 && bias.sizes()[0] == sizes[1] && f.beta == 1.0 && f.alpha == 1.0) {
    y = compute(a, b, bias.detach().contiguous(), {});
  } else {
    y = empty(sizes, like(a));
    if (f.beta != 0.0) launch(kernels::copy, a.device(), {y.tensor_view(), bias.tensor_view()});
    launch(kernels::matmul, a.device(), {y.tensor_view(), a.tensor_view(), b.tensor_view(), {}, f.alpha, f.beta});
  }
  LEVIN_TRACE("addmm", {bias, a, b}, {y}, {{"beta", f.beta}, {"alpha", f.alpha}});
  if (Context* c = record("addmm", y, {bias, a, b}, [](Context& k, const Tensor& g) -> Grads {
        const AddmmFactors& factors = k.get<AddmmFactors>();
        return {k.needs(0) ? scaled_by(g, factors.beta) : Tensor(),
                k.needs(1) ? scaled_by(matmul(g, t(k.saved(1))), factors.alpha) : Tensor(),
                k.needs(2) ? scaled_by(matmul(t(k.saved(0)), g), factors.alpha) : Tensor()};
      }))
    c->save(c->needs(2) ? a : Tensor(), c->needs(1) ? b : Tensor()).set(f);
  return y;
}

}  // namespace

Tensor addmm(const Tensor& bias, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  LEVIN_AUTOCAST(lower, addmm, bias, a, b, beta, alpha);
  check_matrices("addmm", a, b);
  if (a.sizes()[1] != b.sizes()[0]) inner_sizes_differ("addmm", a, b);
  const Shape sizes{a.sizes()[0], b.sizes()[1]};
  if (broadcast_shapes(bias.sizes(), sizes, "addmm") != sizes)
    fail<ShapeError>("[addmm] the bias is {}, which does not broadcast to the product's shape {}.", bias.sizes(),
                     sizes);
  check_same_device("addmm", {"the bias", bias}, {"a", a});
  if (a.is_floating() && bias.dtype() == a.dtype())
    return fused_addmm(bias, a, b, {beta.to<double>(), alpha.to<double>()});
  // For integers the factors stay integers. If the bias has another type, the types are promoted as in add().
  const auto scaled = [](const Tensor& x, const Scalar& factor) {
    return factor.to<double>() == 1.0 ? x : mul(x, factor);
  };
  return add(scaled(mm(a, b), alpha), scaled(bias, beta));
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  LEVIN_AUTOCAST(lower, linear, x, weight, bias);
  LEVIN_TRACE_CALL(linear(x, weight, bias), "linear", {x, weight, bias});
  check_operands("linear", {"x", x}, {"weight", weight});
  if (weight.dim() != 2 || x.dim() == 0 || x.sizes().back() != weight.sizes()[1])
    fail<ShapeError>("[linear] x is {}, weight is {}: the last size of x must be the weight's second.", x.sizes(),
                     weight.sizes());
  if (bias.defined() && (bias.dim() != 1 || bias.sizes()[0] != weight.sizes()[0]))
    fail<ShapeError>("[linear] bias is {}, weight is {}: bias needs one value an output, ({},).", bias.sizes(),
                     weight.sizes(), weight.sizes()[0]);
  if (bias.defined()) check_operands("linear", {"x", x}, {"bias", bias});
  if (x.dim() != 2) {
    Shape sizes = x.sizes();
    sizes[x.dim() - 1] = weight.sizes()[0];
    const int64_t rows = x.dim() == 1 ? 1 : leading(x, 1).numel();
    return reshape(linear(reshape(x, {rows, x.sizes().back()}), weight, bias), sizes);
  }
  Tensor y = compute(x, alias(weight, {weight.sizes()[1], weight.sizes()[0]},
                              {weight.strides()[1], weight.strides()[0]}, weight.storage_offset()),
                     bias.defined() ? bias.detach().contiguous() : bias, {});
  if (Context* c = record("linear", y, {x, weight, bias}, [](Context& k, const Tensor& g) -> Grads {
        return {k.needs(0) ? matmul(g, k.saved(1)) : Tensor(), k.needs(1) ? matmul(t(g), k.saved(0)) : Tensor(),
                k.needs(2) ? sum(g, {0}) : Tensor()};
      }))
    c->save(c->needs(1) ? x : Tensor(), c->needs(0) ? weight : Tensor());
  return y;
}

}  // namespace levin
