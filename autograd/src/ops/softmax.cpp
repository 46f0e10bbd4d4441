// Softmax, its logarithm and their gradients.

#include "autocast.h"
#include "values.h"

#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/record.h>
#include <levin/autograd/trace.h>
#include <levin/kernels/softmax.h>

namespace levin {

using namespace ops;

namespace {

using ForwardKernel = kernels::Kernel<void(const kernels::SoftmaxArgs&, Stream&)>;
using BackwardKernel = kernels::Kernel<void(const kernels::SoftmaxBackwardArgs&, Stream&)>;

/// Computes dx of softmax and log_softmax; an operation itself, so that it can be differentiated again.
Tensor run_backward(const BackwardKernel& kernel, const Tensor& g, const Tensor& y, int axis) {
  const Tensor upstream = contiguous(g.detach()), output = contiguous(y.detach());
  Tensor dx = empty(y.sizes(), like(y));
  const Around a = around(y.sizes(), axis);
  launch(kernel, y.device(), {dx.tensor_view(), upstream.tensor_view(), output.tensor_view(), a.outer, a.n, a.inner});
  return dx;
}

Tensor softmax_backward(const Tensor& g, const Tensor& y, int axis) {
  Tensor dx = run_backward(kernels::softmax_backward, g, y, axis);
  if (Context* c = record("softmax_backward", dx, {g, y}, [](Context& k, const Tensor& v) -> Grads {
        const Tensor g1 = k.saved(0), y1 = k.saved(1);
        const int along = k.get<int>();
        const Tensor inner = sum(mul(g1, y1), {along}, true), outer = sum(mul(v, y1), {along}, true);
        return {k.needs(0) ? softmax_backward(v, y1, along) : Tensor(),
                k.needs(1) ? sub(mul(v, sub(g1, inner)), mul(g1, outer)) : Tensor()};
      }))
    c->save(g, y).set(axis);
  return dx;
}

Tensor log_softmax_backward(const Tensor& g, const Tensor& y, int axis) {
  Tensor dx = run_backward(kernels::log_softmax_backward, g, y, axis);
  if (Context* c = record("log_softmax_backward", dx, {g, y}, [](Context& k, const Tensor& v) -> Grads {
        const Tensor g1 = k.saved(0), y1 = k.saved(1);
        const int along = k.get<int>();
        const Tensor p = exp(y1);
        return {k.needs(0) ? sub(v, sum(mul(v, p), {along}, true)) : Tensor(),
                k.needs(1) ? neg(mul(mul(v, p), sum(g1, {along}, true))) : Tensor()};
      }))
    c->save(g, y).set(axis);
  return dx;
}

Tensor forward(const ForwardKernel& kernel, const Tensor& x, int64_t axis, BackwardFn backward) {
  const char* op = kernel.name();
  check_floating(op, x);
  if (is_16_bit(x)) return to(forward(kernel, to(x, kFloat32), axis, backward), x.dtype());
  const int along = wrap_axis(axis, x.dim(), op);
  Tensor y = empty(x.sizes(), like(x));
  const Around a = around(x.sizes(), along);
  launch(kernel, x.device(), {y.tensor_view(), dense(x).tensor_view(), a.outer, a.n, a.inner});
  if (Context* c = record(op, y, {x}, backward)) c->save_output(y).set(along);
  return y;
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t axis) {
  LEVIN_AUTOCAST(float32, softmax, x, axis);
  LEVIN_TRACE_CALL(softmax(x, axis), "softmax", {x}, {{"axis", axis}});
  return forward(kernels::softmax, x, axis, [](Context& k, const Tensor& g) -> Grads {
    return {softmax_backward(g, k.saved(0), k.get<int>())};
  });
}

Tensor log_softmax(const Tensor& x, int64_t axis) {
  LEVIN_AUTOCAST(float32, log_softmax, x, axis);
  LEVIN_TRACE_CALL(log_softmax(x, axis), "log_softmax", {x}, {{"axis", axis}});
  return forward(kernels::log_softmax, x, axis, [](Context& k, const Tensor& g) -> Grads {
    return {log_softmax_backward(g, k.saved(0), k.get<int>())};
  });
}

Tensor softmax(const Tensor& x, int64_t axis, const DTypeOptions& options) {
  return to(softmax(to(x, options.dtype.value), axis), options.dtype.value);
}

Tensor log_softmax(const Tensor& x, int64_t axis, const DTypeOptions& options) {
  return to(log_softmax(to(x, options.dtype.value), axis), options.dtype.value);
}

}  // namespace levin
