// where, masked_fill and arithmetic of three tensors.

#include "../../errors.h"
#include "../autocast.h"
#include "../values.h"
#include "common.h"

#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/trace.h>

namespace levin {

using namespace ops;

namespace {

void check_condition(const char* op, const Tensor& condition) {
  if (condition.dtype() != kBool) {
    fail<DTypeError>("[{}] the condition is {}, not bool; compare it first, e.g. c != 0.", op, condition.dtype());
  }
}

/// Either choice may be a number: then its tensor is undefined.
Tensor choose(const Tensor& condition, const Tensor& a, const Tensor& b, const TensorView& va, const TensorView& vb,
              DType t, const Scalar& a_number = 0, const Scalar& b_number = 0) {
  check_condition("where", condition);
  Shape sizes = condition.sizes();
  for (const Tensor* x : {&a, &b}) {
    if (!x->defined()) continue;
    common_device("where", condition, *x);
    sizes = broadcast_shapes(sizes, x->sizes(), "where");
  }
  Tensor y = fresh(sizes, t, condition.device());
  launch(kernels::where, y.device(), {y.tensor_view(), condition.tensor_view(), va, vb, t});
  LEVIN_TRACE("where", {condition, a, b}, {y}, {{"a", a_number}, {"b", b_number}});
  if (Context* c = record("where", y, {a, b}, [](Context& k, const Tensor& g) -> Grads {
        return {k.needs(0) ? where(k.saved(0), g, 0) : Tensor(), k.needs(1) ? where(k.saved(0), 0, g) : Tensor()};
      }))
    c->save(condition);
  return y;
}

DType result_type_of_three(const Tensor& a, const Tensor& b, const Tensor& c) {
  const DType t = result_type(a, b);
  return t == c.dtype() ? t : promote_types(t, result_type(b, c));
}

}  // namespace

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return choose(condition, a, b, a.tensor_view(), b.tensor_view(), result_type(a, b));
}

Tensor where(const Tensor& condition, const Tensor& a, const Scalar& b) {
  const DType t = b.promote_with(a.dtype());
  return choose(condition, a, {}, a.tensor_view(), TensorView::number(b, t), t, 0, b);
}

Tensor where(const Tensor& condition, const Scalar& a, const Tensor& b) {
  const DType t = a.promote_with(b.dtype());
  return choose(condition, {}, b, TensorView::number(a, t), b.tensor_view(), t, a);
}

Tensor where(const Tensor& condition, const Scalar& a, const Scalar& b) {
  const bool integers = a.promote_with(DType::i64) == DType::i64 && b.promote_with(DType::i64) == DType::i64;
  const DType t = integers ? DType::i64 : default_dtype();
  return choose(condition, {}, {}, TensorView::number(a, t), TensorView::number(b, t), t, a, b);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Scalar& value) {
  check_condition("masked_fill", mask);
  const Device device = common_device("masked_fill", x, mask);
  Tensor y = fresh(broadcast_shapes(x.sizes(), mask.sizes(), "masked_fill"), x.dtype(), device);
  launch(kernels::where, device,
         {y.tensor_view(), mask.tensor_view(), TensorView::number(value, x.dtype()), x.tensor_view(), x.dtype()});
  LEVIN_TRACE("where", {mask, Tensor(), x}, {y}, {{"a", value}, {"b", 0}});
  if (Context* c = record("masked_fill", y, {x}, [](Context& k, const Tensor& g) -> Grads {
        return {masked_fill(g, k.saved(0), 0)};
      }))
    c->save(mask);
  return y;
}

Tensor lerp(const Tensor& start, const Tensor& end, const Tensor& weight) {
  const DType t = floating_type(result_type_of_three(start, end, weight));
  Tensor y = ternary(kernels::lerp, "lerp", start, end, weight, t);
  if (Context* c = record("lerp", y, {start, end, weight}, [](Context& k, const Tensor& g) -> Grads {
        // Compute in the result's type, which may have more digits than an operand's.
        const auto wide = [&](int i) { return to(k.saved(i), g.dtype()); };
        return {k.needs(0) ? mul(g, rsub(wide(2), 1)) : Tensor(), k.needs(1) ? mul(g, wide(2)) : Tensor(),
                k.needs(2) ? mul(g, sub(wide(1), wide(0))) : Tensor()};
      }))
    c->save(c->needs(2) ? start : Tensor(), c->needs(2) ? end : Tensor(), weight);
  return y;
}

Tensor lerp(const Tensor& start, const Tensor& end, const Scalar& weight) {
  return lerp(start, end, tensor(weight, {.dtype = floating_type(start.dtype()), .device = start.device()}));
}

Tensor addcmul(const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& value) {
  LEVIN_AUTOCAST(widest, addcmul, a, b, c, value);
  const DType t = result_type_of_three(a, b, c);
  refuse_bool("addcmul", t, "logical_or and logical_and");
  check_factor("addcmul", value, t);
  if (!is_exact_parameter(value, t)) return add(a, mul(mul(to(b, t), c), value));
  Tensor y = ternary(kernels::addcmul, "addcmul", a, b, c, t, value.to<double>());
  if (Context* context = record("addcmul", y, {a, b, c}, [](Context& k, const Tensor& g) -> Grads {
        const double v = k.get<double>();
        return {k.needs(0) ? g : Tensor(), k.needs(1) ? mul(mul(g, k.saved(1)), v) : Tensor(),
                k.needs(2) ? mul(mul(g, k.saved(0)), v) : Tensor()};
      }))
    context->save(context->needs(2) ? b : Tensor(), context->needs(1) ? c : Tensor()).set(value.to<double>());
  return y;
}

Tensor addcdiv(const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& value) {
  LEVIN_AUTOCAST(widest, addcdiv, a, b, c, value);
  const DType t = floating_type(result_type_of_three(a, b, c));
  Tensor y = ternary(kernels::addcdiv, "addcdiv", a, b, c, t, value.to<double>());
  if (Context* context = record("addcdiv", y, {a, b, c}, [](Context& k, const Tensor& g) -> Grads {
        const auto wide = [&](int i) { return to(k.saved(i), g.dtype()); };  // quotients with the result's digits
        const Tensor divisor = wide(1);
        const Tensor scaled = mul(g, k.get<double>());
        return {k.needs(0) ? g : Tensor(), k.needs(1) ? div(scaled, divisor) : Tensor(),
                k.needs(2) ? neg(mul(scaled, div(div(wide(0), divisor), divisor))) : Tensor()};
      }))
    context->save(context->needs(2) ? b : Tensor(), c).set(value.to<double>());
  return y;
}

}  // namespace levin
