// Reductions and their gradients.

#include "../errors.h"
#include "autocast.h"
#include "spectral/complex.h"
#include "values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/autograd/trace.h>
#include <levin/kernels/reduce.h>
#include <levin/kernels/scan.h>

#include <cmath>
#include <limits>

namespace levin {

using namespace ops;

namespace {

/// An output and its shape with the reduced axes kept as 1, as kernels need it.
struct Reduced {
  Tensor out;
  Shape kept;
  TensorView view;
  Shape axes;  ///< wrapped; empty for all
};

Reduced prepare(const char* op, const Tensor& x, const Shape& axes, bool keepdim, DType dtype) {
  if (x.is_complex()) [[unlikely]] levin::detail::refuse_dtype(op, x.dtype(), "real types");
  Reduced r;
  if (axes.empty()) {
    r.kept = Shape::filled(x.dim(), 1);
    r.out = empty(keepdim ? r.kept : Shape{}, {.dtype = dtype, .device = x.device()});
  } else {
    const Shape wrapped = r.axes = wrap_axes(axes, x.dim(), op);
    r.kept = reduced_sizes(x.sizes(), wrapped, true);
    r.out = empty(keepdim ? r.kept : reduced_sizes(x.sizes(), wrapped, false), {.dtype = dtype, .device = x.device()});
  }
  r.view = r.out.tensor_view();
  r.view.sizes = r.kept;
  r.view.strides = contiguous_strides(r.kept);
  return r;
}

#define LEVIN_TRACE_REDUCTION(op, ...) \
  LEVIN_TRACE(op, {x}, {r.out}, {{"axes", r.axes}, {"keepdim", keepdim} __VA_OPT__(, ) __VA_ARGS__})

/// Reshapes g so that the reduced axes have size 1.
Tensor keep_axes(const Tensor& g, const Shape& kept) { return g.sizes() == kept ? g : reshape(g, kept); }

/// Expands g, which has the reduced sizes, to the input's sizes.
Tensor spread(Context& k, const Tensor& g) { return expand(keep_axes(g, k.get<Shape>()), k.input(0).sizes); }

void refuse_empty(const char* op, const Tensor& x, int64_t outputs) {
  if (x.numel() == 0 && outputs != 0)
    fail<ShapeError>("[{}] x is {}: no elements, so there is none to choose. Check the size of x before.", op,
                     x.sizes());
}

/// Splits g evenly among the elements that `ties` marks; they are counted in int64, since 16-bit floats end at 65,504.
Tensor tie_share(const Tensor& ties, const Shape& kept, const Tensor& g) {
  return div(keep_axes(g, kept), sum_to_size(ties, kept));
}

/// As in PyTorch, a NaN makes all gradients of its line NaN: nothing equals the extremum, and 0 elements share.
Grads extremum_along_gradient(Context& k, const Tensor& g) {
  const Shape& kept = k.get<Shape>();
  const Tensor ties = eq(k.saved(0), keep_axes(k.saved(1), kept));
  return {mul(tie_share(ties, kept, g), ties)};
}

/// As in PyTorch, the NaN elements share the gradient if there are any.
Grads extremum_of_all_gradient(Context& k, const Tensor& g) {
  const Tensor x = k.saved(0), ties = logical_or(eq(x, k.saved(1)), isnan(x));
  return {where(ties, tie_share(ties, k.get<Shape>(), g), 0)};
}

Tensor extremum(const char* op, const kernels::ReduceKernel& kernel, const Tensor& x, const Shape& axes, bool keepdim,
                BackwardFn backward) {
  Reduced r = prepare(op, x, axes, keepdim, x.dtype());
  refuse_empty(op, x, r.out.numel());
  launch(kernel, x.device(), {r.view, x.tensor_view()});
  LEVIN_TRACE_REDUCTION(kernel.name());
  if (Context* c = record(op, r.out, {x}, backward)) c->save(x).save_output(r.out).set(r.kept);
  return r.out;
}

using ArgKernel = kernels::Kernel<void(const kernels::ArgReduceArgs&, Stream&)>;

/// Returns the values (undefined unless `with_values`) and indices along an axis, recorded.
ValuesIndices arg_extremum(const char* op, const ArgKernel& kernel, const Tensor& x, int64_t axis, bool keepdim,
                           bool with_values) {
  const int wrapped = wrap_axis(axis, x.dim(), op);
  const Shape kept = x.dim() == 0 ? Shape{} : reduced_sizes(x.sizes(), {wrapped}, true);
  const Shape sizes = keepdim || x.dim() == 0 ? kept : reduced_sizes(x.sizes(), {wrapped}, false);
  const Around a = around(x.sizes(), wrapped);
  refuse_empty(op, x, a.outer * a.inner);
  ValuesIndices result{with_values ? empty(sizes, like(x)) : Tensor(),
                       empty(sizes, {.dtype = kInt64, .device = x.device()})};
  const Tensor source = contiguous(x.detach());
  launch(kernel, x.device(),
         {with_values ? result.values.tensor_view() : TensorView(), result.indices.tensor_view(), source.tensor_view(),
          a.outer, a.n, a.inner});
  LEVIN_TRACE(kernel.name(), {x}, {result.indices, result.values}, {{"axis", wrapped}, {"keepdim", keepdim}});
  if (!with_values) return result;
  if (Context* c = record(op, result.values, {x}, [](Context& k, const Tensor& g) -> Grads {
        const TensorMeta& in = k.input(0);
        if (in.sizes.empty()) return {g};
        const auto& [kept_sizes, along] = k.get<std::pair<Shape, int>>();
        return {scatter_add(zeros(in.sizes, {.dtype = g.dtype(), .device = g.device()}), along,
                            reshape(k.saved(0), kept_sizes), keep_axes(g, kept_sizes))};
      }))
    c->save(result.indices).set(std::pair<Shape, int>(kept, wrapped));
  return result;
}

Tensor arg_only(const char* op, const ArgKernel& kernel, const Tensor& x, std::optional<int64_t> axis, bool keepdim) {
  if (axis) return arg_extremum(op, kernel, x, *axis, keepdim, false).indices;
  const Tensor flat = arg_extremum(op, kernel, reshape(x.detach(), {x.numel()}), 0, false, false).indices;
  return keepdim ? reshape(flat, Shape::filled(x.dim(), 1)) : flat;
}

Tensor logical(const char* op, const kernels::ReduceKernel& kernel, const Tensor& x, const Shape& axes, bool keepdim) {
  Reduced r = prepare(op, x, axes, keepdim, kBool);
  launch(kernel, x.device(), {r.view, x.tensor_view()});
  LEVIN_TRACE_REDUCTION(op);
  return r.out;
}

/// Computes, along the last axis, the products of all elements before each element, or of those after it, in log2(n)
/// steps on whole tensors.
Tensor product_beside(const Tensor& x, bool before) {
  const int64_t n = x.sizes().back();
  const auto shifted = [&](const Tensor& y, int64_t by) {
    Shape sizes = y.sizes();
    sizes[y.dim() - 1] = by;
    const Tensor fill = ones(sizes, like(y));
    return before ? cat({fill, narrow(y, -1, 0, n - by)}, -1) : cat({narrow(y, -1, by, n - by), fill}, -1);
  };
  Tensor product = shifted(x, 1);
  for (int64_t step = 1; step < n; step *= 2) product = mul(product, shifted(product, step));
  return product;
}

/// Computes for each element the product of all others along the axes that are 1 in `kept`; exact with zeros among
/// them. Computed in double, because products of some of the others may leave the range of a narrower type.
Tensor product_of_others(const Tensor& x, const Shape& kept) {
  if (x.is_floating() && x.dtype() != DType::f64) return to(product_of_others(to(x, DType::f64), kept), x.dtype());
  Shape order, back = Shape::filled(x.dim(), 0), flat;
  int64_t n = 1;
  for (int d = 0; d < x.dim(); ++d)
    if (kept[d] != 1 || x.sizes()[d] == 1) order.push_back(d), flat.push_back(x.sizes()[d]);
  for (int d = 0; d < x.dim(); ++d)
    if (kept[d] == 1 && x.sizes()[d] != 1) order.push_back(d), n *= x.sizes()[d];
  for (int d = 0; d < x.dim(); ++d) back[static_cast<int>(order[d])] = d;
  if (n <= 1) return ones(x.sizes(), like(x));
  flat.push_back(n);
  const Tensor permuted = permute(x, order), lines = reshape(permuted, flat);
  return permute(reshape(mul(product_beside(lines, true), product_beside(lines, false)), permuted.sizes()), back);
}

/// Computes g / d, and 0 where `zero` is true. There its gradients of any order are 0 too.
Tensor quotient_or_zero(const Tensor& g, const Tensor& d, const Tensor& zero) {
  return masked_fill(div(g, masked_fill(d, zero, 1)), zero, 0);
}

/// Computes the square root with gradient 0 at 0, as PyTorch's std and norm do.
Tensor root(const Tensor& v) {
  const Tensor y = unrecorded([&] { return sqrt(v); });
  if (Context* c = record("std", y, {v}, [](Context& k, const Tensor& g) -> Grads {
        const Tensor s = k.saved(0);
        return {quotient_or_zero(g, mul(s, 2), eq(s, 0))};
      }))
    c->save_output(y);
  return y;
}

Tensor norm_gradient(Context& k, const Tensor& g) {
  const auto& [kept, p] = k.get<std::pair<Shape, double>>();
  const Tensor x = k.saved(0), n = keep_axes(k.saved(1), kept), gk = keep_axes(g, kept);
  if (p == 0.0) return zeros(x.sizes(), like(x));
  if (p == 1.0) return mul(sign(x), gk);
  if (p == 2.0) return mul(x, quotient_or_zero(gk, n, eq(n, 0)));
  if (std::isinf(p)) {
    const Tensor ties = eq(abs(x), n);
    return mul(sign(x), where(ties, tie_share(ties, kept, gk), 0));
  }
  const Tensor scale = quotient_or_zero(gk, pow(n, p - 1.0), eq(n, 0));
  Tensor slope = pow(abs(x), p - 1.0);
  if (p < 1.0) slope = masked_fill(slope, eq(x, 0), 0);
  return mul(mul(sign(x), slope), scale);
}

/// Computes log(sum(exp(z))) with the axes kept. The gradient is exp(z - result), not exp(z) / sum, which is NaN if
/// both overflow.
Tensor log_sum_exp(const Tensor& z, const Shape& axes) {
  const Tensor y = unrecorded([&] { return log(sum(exp(z), axes, true)); });
  if (Context* c = record("logsumexp", y, {z}, [](Context& k, const Tensor& g) -> Grads {
        return {mul(g, exp(sub(k.saved(0), k.saved(1))))};
      }))
    c->save(z).save_output(y);
  return y;
}

}  // namespace

Tensor sum(const Tensor& x, const Axes& axes, bool keepdim) {
  LEVIN_AUTOCAST(float32, sum, x, axes, keepdim);
  if (x.is_complex()) [[unlikely]] return complex_sum(x, axes, keepdim, false);
  Reduced r = prepare("sum", x, axes, keepdim, sum_type(x.dtype()));
  launch(kernels::sum, x.device(), {r.view, x.tensor_view()});
  LEVIN_TRACE_REDUCTION("sum");
  if (Context* c = record("sum", r.out, {x}, [](Context& k, const Tensor& g) -> Grads { return {spread(k, g)}; }))
    c->set(r.kept);
  return r.out;
}

// PyTorch converts to the dtype before it reduces. The result is converted because sums of integers are int64.
#define LEVIN_OF_DTYPE(name)                                                                                    \
  Tensor name(const Tensor& x, const Axes& axes, const ReduceOptions& options) {                                \
    if (!options.dtype) return name(x, axes, options.keepdim);                                                  \
    return to(name(to(x, *options.dtype), axes, options.keepdim), *options.dtype);                              \
  }                                                                                                             \
  Tensor name(const Tensor& x, const DTypeOptions& options) { return name(x, {}, {.dtype = options.dtype.value}); }
LEVIN_OF_DTYPE(sum)

Tensor mean(const Tensor& x, const Axes& axes, bool keepdim) {
  if (x.is_complex()) [[unlikely]] return complex_sum(x, axes, keepdim, true);
  check_floating("mean", x);
  Reduced r = prepare("mean", x, axes, keepdim, x.dtype());
  const int64_t outputs = r.out.numel();
  const double count = outputs == 0 ? 1.0 : static_cast<double>(x.numel() / outputs);
  launch(kernels::sum, x.device(), {r.view, x.tensor_view(), count});
  LEVIN_TRACE_REDUCTION("mean");
  if (Context* c = record("mean", r.out, {x}, [](Context& k, const Tensor& g) -> Grads {
        const Shape& kept = k.get<Shape>();
        const int64_t n = kept.numel() == 0 ? 1 : k.input(0).sizes.numel() / kept.numel();
        return {spread(k, div(g, static_cast<double>(std::max<int64_t>(1, n))))};  // n is 0 if x has no elements
      }))
    c->set(r.kept);
  return r.out;
}
LEVIN_OF_DTYPE(mean)

Tensor sum_to_size(const Tensor& x, const Shape& sizes) {
  if (x.sizes() == sizes) return x;
  const int lead = x.dim() - sizes.size();
  bool fits = lead >= 0;
  for (int d = 0; fits && d < sizes.size(); ++d) fits = sizes[d] == x.sizes()[lead + d] || sizes[d] == 1;
  if (!fits)
    fail<ShapeError>("[sum_to_size] {} does not broadcast to {}; each size has to be 1 or x's.", sizes, x.sizes());
  if (x.is_complex()) {
    return on_parts(x, [&](const Tensor& parts) { return sum_to_size(parts, joined(sizes, {2})); });
  }
  const Shape kept = joined(Shape::filled(lead, 1), sizes);
  Tensor y = empty(sizes, {.dtype = sum_type(x.dtype()), .device = x.device()});
  TensorView view = y.tensor_view();
  view.sizes = kept;
  view.strides = contiguous_strides(kept);
  launch(kernels::sum, x.device(), {view, x.tensor_view()});
  LEVIN_TRACE("sum_to_size", {x}, {y});
  record("sum_to_size", y, {x}, [](Context& k, const Tensor& g) -> Grads { return {expand(g, k.input(0).sizes)}; });
  return y;
}

Tensor prod(const Tensor& x, const Axes& axes, bool keepdim) {
  LEVIN_AUTOCAST(float32, prod, x, axes, keepdim);
  Reduced r = prepare("prod", x, axes, keepdim, sum_type(x.dtype()));
  launch(kernels::prod, x.device(), {r.view, x.tensor_view()});
  LEVIN_TRACE_REDUCTION("prod");
  if (Context* c = record("prod", r.out, {x}, [](Context& k, const Tensor& g) -> Grads {
        return {mul(product_of_others(k.saved(0), k.get<Shape>()), keep_axes(g, k.get<Shape>()))};
      }))
    c->save(x).set(r.kept);
  return r.out;
}
LEVIN_OF_DTYPE(prod)

Tensor var(const Tensor& x, const Axes& axes, double correction, bool keepdim) {
  check_floating("var", x);
  if (size_of(x.dtype()) == 2) return to(var(to(x, kFloat32), axes, correction, keepdim), x.dtype());
  const Tensor squares = sum(square(sub(x, mean(x, axes, true))), axes, keepdim);
  const int64_t outputs = squares.numel();
  const double count = outputs == 0 ? 0.0 : static_cast<double>(x.numel() / outputs);
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (count == 0.0) return add(squares, nan);  // a recorded division by 0 gives NaN gradients
  // As in PyTorch, the variance of a single number is NaN, with a gradient that is NaN whatever the number is.
  if (x.dim() == 0 && correction >= 1.0) return mul(sum(x, axes, keepdim), nan);
  return div(squares, std::max(0.0, count - correction));
}

Tensor var(const Tensor& x, const Axes& axes, const VarOptions& options) {
  return var(x, axes, options.correction, options.keepdim);
}

Tensor std(const Tensor& x, const Axes& axes, double correction, bool keepdim) {
  check_floating("std", x);
  if (size_of(x.dtype()) == 2) return to(levin::std(to(x, kFloat32), axes, correction, keepdim), x.dtype());
  return root(var(x, axes, correction, keepdim));
}

Tensor std(const Tensor& x, const Axes& axes, const VarOptions& options) {
  return levin::std(x, axes, options.correction, options.keepdim);
}

Tensor amax(const Tensor& x, const Axes& axes, bool keepdim) {
  return extremum("amax", kernels::amax, x, axes, keepdim, extremum_along_gradient);
}
Tensor amin(const Tensor& x, const Axes& axes, bool keepdim) {
  return extremum("amin", kernels::amin, x, axes, keepdim, extremum_along_gradient);
}
Tensor max(const Tensor& x) { return extremum("max", kernels::amax, x, {}, false, extremum_of_all_gradient); }
Tensor min(const Tensor& x) { return extremum("min", kernels::amin, x, {}, false, extremum_of_all_gradient); }

ValuesIndices max(const Tensor& x, int64_t axis, bool keepdim) {
  return arg_extremum("max", kernels::argmax, x, axis, keepdim, true);
}
ValuesIndices min(const Tensor& x, int64_t axis, bool keepdim) {
  return arg_extremum("min", kernels::argmin, x, axis, keepdim, true);
}
Tensor argmax(const Tensor& x, std::optional<int64_t> axis, bool keepdim) {
  return arg_only("argmax", kernels::argmax, x, axis, keepdim);
}
Tensor argmin(const Tensor& x, std::optional<int64_t> axis, bool keepdim) {
  return arg_only("argmin", kernels::argmin, x, axis, keepdim);
}

Tensor any(const Tensor& x, const Axes& axes, bool keepdim) { return logical("any", kernels::any, x, axes, keepdim); }
Tensor all(const Tensor& x, const Axes& axes, bool keepdim) { return logical("all", kernels::all, x, axes, keepdim); }

Tensor norm(const Tensor& x, double p, const Axes& axes, bool keepdim) {
  LEVIN_AUTOCAST(float32, norm, x, p, axes, keepdim);
  check_floating("norm", x);
  Reduced r = prepare("norm", x, axes, keepdim, x.dtype());
  if (std::isinf(p)) refuse_empty("norm", x, r.out.numel());
  launch(kernels::norm, x.device(), {r.view, x.tensor_view(), p});
  LEVIN_TRACE_REDUCTION("norm", {"p", p});
  if (Context* c =
          record("norm", r.out, {x}, [](Context& k, const Tensor& g) -> Grads { return {norm_gradient(k, g)}; }))
    c->save(x).save_output(r.out).set(std::pair<Shape, double>(r.kept, p));
  return r.out;
}

Tensor logsumexp(const Tensor& x, const Axes& axes, bool keepdim) {
  check_floating("logsumexp", x);
  if (size_of(x.dtype()) == 2) return to(logsumexp(to(x, kFloat32), axes, keepdim), x.dtype());
  Tensor shift;  // the largest value, or 0 if that is infinite; undefined if there are no elements
  if (x.numel() > 0) {
    const Tensor top = amax(x.detach(), axes, true);
    shift = masked_fill(top, isinf(top), 0);
  }
  Tensor y = log_sum_exp(shift.defined() ? sub(x, shift) : x, axes);
  if (shift.defined()) y = add(y, shift);
  if (keepdim) return y;
  return reshape(y, axes.empty() ? Shape{} : reduced_sizes(x.sizes(), wrap_axes(axes, x.dim(), "logsumexp"), false));
}

}  // namespace levin
