// Cumulative sums, products and extrema along an axis, and sorting, with their gradients. The gradient of a sorted
// value goes back to the position that it came from.

#include "../errors.h"
#include "autocast.h"
#include "values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/statistics.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/autograd/trace.h>
#include <levin/kernels/scan.h>

#include <cmath>
#include <utility>

namespace levin {

using namespace ops;

namespace {

Tensor cumsum_towards(const Tensor& x, int axis, bool reverse) {
  const Tensor source = dense(x);
  Tensor y = empty(x.sizes(), {.dtype = sum_type(x.dtype()), .device = x.device()});
  const Around a = around(x.sizes(), axis);
  launch(kernels::cumsum, x.device(), {y.tensor_view(), source.tensor_view(), a.outer, a.n, a.inner, reverse});
  LEVIN_TRACE("cumsum", {x}, {y}, {{"axis", axis}, {"reverse", reverse}});
  if (Context* c = record("cumsum", y, {x}, [](Context& k, const Tensor& g) -> Grads {
        const auto& [along, reversed] = k.get<std::pair<int, bool>>();
        return {cumsum_towards(g, along, !reversed)};
      }))
    c->set(std::pair<int, bool>(axis, reverse));
  return y;
}

/// Returns the elements before each one along the axis; the first one has `start` before it.
Tensor before(const Tensor& x, int axis, double start) {
  if (x.dim() == 0 || x.size(axis) == 0) return full(x.sizes(), start, like(x));
  Shape first = x.sizes();
  first[axis] = 1;
  return cat({full(first, start, like(x)), narrow(x, axis, 0, x.size(axis) - 1)}, axis);
}

/// Solves out[i] = b[i] + a[i] out[i - 1] along the axis, or from the end out[i] = b[i] + a[i + 1] out[i + 1]. Its
/// gradient by b is the other direction applied to g, and the gradient by a[i] is that at i - 1 or i times out at the
/// other one of the two.
Tensor recurrence(const Tensor& a, const Tensor& b, int axis, bool reverse) {
  Tensor y = empty(b.sizes(), like(b));
  const Around l = around(b.sizes(), axis);
  launch(kernels::recurrence, b.device(),
         {y.tensor_view(), dense(a).tensor_view(), dense(b).tensor_view(), l.outer, l.n, l.inner, reverse});
  if (Context* c = record("recurrence", y, {a, b}, [](Context& k, const Tensor& g) -> Grads {
        const auto& [along, reversed] = k.get<std::pair<int, bool>>();
        const Tensor db = recurrence(k.saved(0), g, along, !reversed);
        if (!k.needs(0)) return {Tensor(), db};
        const Tensor out = k.saved(1);
        return {reversed ? mul(before(db, along, 0), out) : mul(db, before(out, along, 0)), db};
      }))
    c->save(a).save_output(y).set(std::pair<int, bool>(axis, reverse));
  return y;
}

using ExtremumKernel = kernels::Kernel<void(const kernels::CumulativeExtremumArgs&, Stream&)>;

ValuesIndices cumulative_extremum(const char* op, const ExtremumKernel& kernel, const Tensor& x, int64_t axis) {
  const int along = wrap_axis(axis, x.dim(), op);
  ValuesIndices y{empty(x.sizes(), like(x)), empty(x.sizes(), {.dtype = kInt64, .device = x.device()})};
  const Around a = around(x.sizes(), along);
  launch(kernel, x.device(),
         {y.values.tensor_view(), y.indices.tensor_view(), dense(x).tensor_view(), a.outer, a.n, a.inner});
  if (Context* c = record(op, y.values, {x}, [](Context& k, const Tensor& g) -> Grads {
        if (g.dim() == 0) return {g};
        return {scatter_add(zeros(g.sizes(), like(g)), k.get<int>(), k.saved(0), g)};
      }))
    c->save(y.indices).set(along);
  return y;
}

}  // namespace

Tensor cumsum(const Tensor& x, int64_t axis) {
  LEVIN_AUTOCAST(float32, cumsum, x, axis);
  return cumsum_towards(x, wrap_axis(axis, x.dim(), "cumsum"), false);
}

Tensor cumsum(const Tensor& x, int64_t axis, const DTypeOptions& options) {
  const DType t = options.dtype.value;
  return to(cumsum(to(x, t), axis), t);
}

Tensor cumprod(const Tensor& x, int64_t axis) {
  LEVIN_AUTOCAST(float32, cumprod, x, axis);
  const int along = wrap_axis(axis, x.dim(), "cumprod");
  Tensor y = empty(x.sizes(), {.dtype = sum_type(x.dtype()), .device = x.device()});
  const Around a = around(x.sizes(), along);
  launch(kernels::cumprod, x.device(), {y.tensor_view(), dense(x).tensor_view(), a.outer, a.n, a.inner});
  // dx[i] = y[i - 1] (g[i] + x[i + 1] (g[i + 1] + x[i + 2] (...))), which divides by no x.
  if (Context* c = record("cumprod", y, {x}, [](Context& k, const Tensor& g) -> Grads {
        const int at = k.get<int>();
        return {mul(before(k.saved(1), at, 1), recurrence(k.saved(0), g, at, true))};
      }))
    c->save(x).save_output(y).set(along);
  return y;
}

ValuesIndices cummax(const Tensor& x, int64_t axis) { return cumulative_extremum("cummax", kernels::cummax, x, axis); }
ValuesIndices cummin(const Tensor& x, int64_t axis) { return cumulative_extremum("cummin", kernels::cummin, x, axis); }

// With m[i] the largest element so far, s[i] = exp(x[i] - m[i]) + exp(m[i - 1] - m[i]) s[i - 1] stays between 1 and
// i + 1. The result m + log(s) is the same for any m, so m is detached.
Tensor logcumsumexp(const Tensor& x, int64_t axis) {
  check_floating("logcumsumexp", x);
  if (size_of(x.dtype()) < 4) return to(logcumsumexp(to(x, kFloat32), axis), x.dtype());
  const int along = wrap_axis(axis, x.dim(), "logcumsumexp");
  const Tensor largest = cummax(x.detach(), along).values, m = masked_fill(largest, isinf(largest), 0);
  const Tensor factors = clamp_max(exp(sub(before(m, along, 0), m)), 1);
  const Tensor s = recurrence(factors, exp(sub(x, m)), along, false);
  const Tensor none = eq(s, 0);  // -inf alone so far
  return masked_fill(add(log(masked_fill(s, none, 1)), m), none, -INFINITY);
}

// Sorting

namespace {

struct Line {
  int axis;
  int64_t k;
  bool descending;
  int64_t from = 0;
};

ValuesIndices first_of(const char* op, const kernels::Kernel<void(const kernels::SortArgs&, Stream&)>& kernel,
                       const Tensor& x, const Line& line) {
  Shape sizes = x.sizes();
  if (!sizes.empty()) sizes[line.axis] = line.k - line.from;
  Tensor values = empty(sizes, like(x)), indices = empty(sizes, {.dtype = kInt64, .device = x.device()});
  const Around a = around(x.sizes(), line.axis);
  launch(kernel, x.device(),
         {values.tensor_view(), indices.tensor_view(), dense(x).tensor_view(), a.outer, a.n, a.inner, line.k,
          line.descending, line.from});
  LEVIN_TRACE("topk", {x}, {values, indices}, {{"axis", line.axis}, {"k", line.k}, {"largest", line.descending}});
  if (Context* c = record(op, values, {x}, [](Context& k, const Tensor& g) -> Grads {
        return {scatter(zeros(k.input(0).sizes, like(g)), k.get<int>(), k.saved(0), g)};
      }))
    c->save(indices).set(line.axis);
  return {values, indices};
}

}  // namespace

ValuesIndices sort(const Tensor& x, int64_t axis, bool descending) {
  const int a = wrap_axis(axis, x.dim(), "sort");
  return first_of("sort", kernels::sort, x, {a, x.dim() == 0 ? 1 : x.sizes()[a], descending});
}

Tensor argsort(const Tensor& x, int64_t axis, bool descending) {
  no_grad guard;
  return sort(x, axis, descending).indices;
}

ValuesIndices topk(const Tensor& x, int64_t k, int64_t axis, bool largest) {
  const int a = wrap_axis(axis, x.dim(), "topk");
  const int64_t n = x.dim() == 0 ? 1 : x.sizes()[a];
  if (k < 0 || k > n)
    fail<ValueError>("[topk] k = {} is out of range: axis {} of {} has {} elements.", k, a, x.sizes(), n);
  return first_of("topk", kernels::topk, x, {a, k, largest});
}

ValuesIndices kthvalue(const Tensor& x, int64_t k, int64_t axis, bool keepdim) {
  const int a = wrap_axis(axis, x.dim(), "kthvalue");
  const int64_t n = x.dim() == 0 ? 1 : x.sizes()[a];
  if (k < 1 || k > n)
    fail<ValueError>("[kthvalue] k is {}, but axis {} of {} has {} elements.", k, axis, x.sizes(), n);
  if (x.dim() == 0) return topk(x, 1);
  ValuesIndices at;
  if (tracing()) [[unlikely]] {  // ONNX has topk, but no selection of one rank
    const auto [values, indices] = topk(x, k, a, false);
    at = {narrow(values, a, k - 1, 1), narrow(indices, a, k - 1, 1)};
  } else {
    at = first_of("kthvalue", kernels::topk, x, {a, k, false, k - 1});
  }
  return keepdim ? at : ValuesIndices{squeeze(at.values, a), squeeze(at.indices, a)};
}

}  // namespace levin
