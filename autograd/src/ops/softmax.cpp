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

template <class Args>
void split_sizes(Args& args, const Shape& sizes, int axis) {
  for (int i = 0; i < sizes.size(); ++i) (i < axis ? args.outer : i == axis ? args.n : args.inner) *= sizes[i];
}

/// Computes dx of softmax and log_softmax; an operation itself, so that it can be differentiated again.
Tensor run_backward(const BackwardKernel& kernel, const Tensor& g, const Tensor& y, int axis) {
  const Tensor upstream = contiguous(g.detach()), output = contiguous(y.detach());
  Tensor dx = empty(y.sizes(), like(y));
  kernels::SoftmaxBackwardArgs args{dx.tensor_view(), upstream.tensor_view(), output.tensor_view()};
  split_sizes(args, y.sizes(), axis);
  launch(kernel, y.device(), args);
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

Tensor forward(const char* op, const ForwardKernel& kernel, const Tensor& x, int axis, BackwardFn backward) {
  const Tensor source = contiguous(x.detach());
  Tensor y = empty(x.sizes(), like(x));
  kernels::SoftmaxArgs args{y.tensor_view(), source.tensor_view()};
  split_sizes(args, x.sizes(), axis);
  launch(kernel, x.device(), args);
  if (Context* c = record(op, y, {x}, backward)) c->save_output(y).set(axis);
  return y;
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t axis) {
  LEVIN_AUTOCAST(float32, softmax, x, axis);
  LEVIN_TRACE_CALL(softmax(x, axis), "softmax", {x}, {{"axis", axis}});
  check_floating("softmax", x);
  if (size_of(x.dtype()) == 2) return to(softmax(to(x, kFloat32), axis), x.dtype());
  return forward("softmax", kernels::softmax, x, wrap_axis(axis, x.dim(), "softmax"),
                 [](Context& k, const Tensor& g) -> Grads { return {softmax_backward(g, k.saved(0), k.get<int>())}; });
}

Tensor log_softmax(const Tensor& x, int64_t axis) {
  LEVIN_AUTOCAST(float32, log_softmax, x, axis);
  LEVIN_TRACE_CALL(log_softmax(x, axis), "log_softmax", {x}, {{"axis", axis}});
  check_floating("log_softmax", x);
  if (size_of(x.dtype()) == 2) return to(log_softmax(to(x, kFloat32), axis), x.dtype());
  return forward(
      "log_softmax", kernels::log_softmax, x, wrap_axis(axis, x.dim(), "log_softmax"),
      [](Context& k, const Tensor& g) -> Grads { return {log_softmax_backward(g, k.saved(0), k.get<int>())}; });
}

Tensor softmax(const Tensor& x, int64_t axis, const DTypeOptions& options) {
  return to(softmax(to(x, options.dtype.value), axis), options.dtype.value);
}

Tensor log_softmax(const Tensor& x, int64_t axis, const DTypeOptions& options) {
  return to(log_softmax(to(x, options.dtype.value), axis), options.dtype.value);
}

}  // namespace levin
