// Convolution. Its two gradients are operations too; the three are closed under differentiation.

#include "../errors.h"
#include "autocast.h"
#include "composed/trace_attributes.h"
#include "values.h"

#include <levin/autograd/ops/conv.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/kernels/conv.h>

namespace levin {

using namespace ops;

namespace {

/// Geometry of y = conv(x, weight), which all three operations store.
struct Geometry {
  Tuple<2> stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  Shape x, weight, y;  ///< sizes
};

Tensor input_gradient(const Tensor& dy, const Tensor& weight, const Tensor& bias, const Geometry& geometry);
Tensor weight_gradient(const Tensor& x, const Tensor& dy, const Geometry& geometry);

/// Returns the output size, 0 if the kernel does not fit into the padded input.
int64_t output_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  const int64_t room = in + 2 * padding - dilation * (kernel - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

kernels::Conv2dArgs arguments(const Geometry& g, const Tensor& x, const Tensor& weight, const Tensor& bias,
                              const Tensor& y) {
  return {x.tensor_view(), weight.tensor_view(), view_of(bias), y.tensor_view(), g.stride[0], g.stride[1],
          g.padding[0],    g.padding[1],         g.dilation[0], g.dilation[1],   g.groups};
}

Tensor forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Geometry& geometry) {
  Tensor y = empty(geometry.y, like(x));
  launch(kernels::conv2d, x.device(), arguments(geometry, dense(x), dense(weight), dense(bias), y));
  if (Context* c = record("conv2d", y, {x, weight, bias}, [](Context& k, const Tensor& g) -> Grads {
        const auto& geo = k.get<Geometry>();
        return {k.needs(0) ? input_gradient(g, k.saved(1), {}, geo) : Tensor(),
                k.needs(1) ? weight_gradient(k.saved(0), g, geo) : Tensor(), k.needs(2) ? sum(g, {0, 2, 3}) : Tensor()};
      }))
    c->save(c->needs(1) ? x : Tensor(), c->needs(0) ? weight : Tensor()).set(geometry);
  return y;
}

Tensor input_gradient(const Tensor& dy, const Tensor& weight, const Tensor& bias, const Geometry& geometry) {
  Tensor dx = empty(geometry.x, like(dy));
  launch(kernels::conv2d_backward_input, dy.device(), arguments(geometry, dx, dense(weight), dense(bias), dense(dy)));
  if (Context* c = record("conv2d_backward_input", dx, {dy, weight, bias}, [](Context& k, const Tensor& g) -> Grads {
        const auto& geo = k.get<Geometry>();
        return {k.needs(0) ? forward(g, k.saved(1), {}, geo) : Tensor(),
                k.needs(1) ? weight_gradient(g, k.saved(0), geo) : Tensor(), k.needs(2) ? sum(g, {0, 2, 3}) : Tensor()};
      }))
    c->save(c->needs(1) ? dy : Tensor(), c->needs(0) ? weight : Tensor()).set(geometry);
  return dx;
}

Tensor weight_gradient(const Tensor& x, const Tensor& dy, const Geometry& geometry) {
  Tensor dw = empty(geometry.weight, like(x));
  launch(kernels::conv2d_backward_weight, x.device(), arguments(geometry, dense(x), dw, {}, dense(dy)));
  if (Context* c = record("conv2d_backward_weight", dw, {x, dy}, [](Context& k, const Tensor& g) -> Grads {
        const auto& geo = k.get<Geometry>();
        return {k.needs(0) ? input_gradient(k.saved(1), g, {}, geo) : Tensor(),
                k.needs(1) ? forward(k.saved(0), g, {}, geo) : Tensor()};
      }))
    c->save(c->needs(1) ? x : Tensor(), c->needs(0) ? dy : Tensor()).set(geometry);
  return dw;
}

void check(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t bias_size,
           Tuple<2> stride, Tuple<2> dilation, int64_t groups) {
  if (x.dim() != 4 || weight.dim() != 4)
    fail<ShapeError>("[{}] x needs three or four dimensions, and weight four: x is {}, weight is {}.", op, x.sizes(),
                     weight.sizes());
  check_same_dtype(op, {{"x", x}, {"weight", weight}, {"bias", bias}});
  if (!x.is_floating()) fail<DTypeError>("[{}] x is {}; a floating type is needed.", op, x.dtype());
  check_same_device(op, {"x", x}, {"weight", weight});
  if (stride[0] < 1 || stride[1] < 1 || dilation[0] < 1 || dilation[1] < 1 || groups < 1)
    fail<ValueError>("[{}] stride ({}, {}), dilation ({}, {}) and groups {} must be 1 or more.", op, stride[0],
                     stride[1], dilation[0], dilation[1], groups);
  if (bias.defined() && (bias.dim() != 1 || bias.sizes()[0] != bias_size))
    fail<ShapeError>("[{}] bias is {}, it needs one value for each of {} output channels.", op, bias.sizes(),
                     bias_size);
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& o) {
  LEVIN_AUTOCAST(lower, conv2d, x, weight, bias, o);
  LEVIN_TRACE_CALL(conv2d(x, weight, bias, o), "conv2d", {x, weight, bias}, LEVIN_CONV_ATTRIBUTES(o));
  if (x.dim() == 3) return squeeze(conv2d(unsqueeze(x, 0), weight, bias, o), 0);
  check("conv2d", x, weight, bias, weight.dim() == 4 ? weight.sizes()[0] : 0, o.stride, o.dilation, o.groups);
  if (needs_float32(kernels::conv2d, x)) return to(conv2d(widened(x), widened(weight), widened(bias), o), x.dtype());
  const Shape &xs = x.sizes(), &ws = weight.sizes();
  if (xs[1] != ws[1] * o.groups || ws[0] % o.groups != 0)
    fail<ShapeError>("[conv2d] x has {} channels; weight {} with {} groups takes {}.", xs[1], ws, o.groups,
                     ws[1] * o.groups);
  const int64_t oh = output_size(xs[2], ws[2], o.stride[0], o.padding[0], o.dilation[0]);
  const int64_t ow = output_size(xs[3], ws[3], o.stride[1], o.padding[1], o.dilation[1]);
  if (o.padding[0] < 0 || o.padding[1] < 0 || oh < 1 || ow < 1)
    fail<ShapeError>("[conv2d] the kernel {}x{} with padding ({}, {}) is larger than the input {}x{}.", ws[2], ws[3],
                     o.padding[0], o.padding[1], xs[2], xs[3]);
  return forward(x, weight, bias, {o.stride, o.padding, o.dilation, o.groups, xs, ws, {xs[0], ws[0], oh, ow}});
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvTranspose2dOptions& o) {
  LEVIN_AUTOCAST(lower, conv_transpose2d, x, weight, bias, o);
  LEVIN_TRACE_CALL(conv_transpose2d(x, weight, bias, o), "conv_transpose2d", {x, weight, bias},
                   LEVIN_CONV_TRANSPOSE_ATTRIBUTES(o));
  if (x.dim() == 3) return squeeze(conv_transpose2d(unsqueeze(x, 0), weight, bias, o), 0);
  check("conv_transpose2d", x, weight, bias, weight.dim() == 4 ? weight.sizes()[1] * o.groups : 0, o.stride, o.dilation,
        o.groups);
  if (needs_float32(kernels::conv2d_backward_input, x))
    return to(conv_transpose2d(widened(x), widened(weight), widened(bias), o), x.dtype());
  const Shape &xs = x.sizes(), &ws = weight.sizes();
  if (xs[1] != ws[0] || ws[0] % o.groups != 0)
    fail<ShapeError>("[conv_transpose2d] x has {} channels; weight {} with {} groups takes {}.", xs[1], ws, o.groups,
                     ws[0]);
  const auto size = [](int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, int64_t extra) {
    return (in - 1) * stride - 2 * padding + dilation * (kernel - 1) + extra + 1;
  };
  const int64_t oh = size(xs[2], ws[2], o.stride[0], o.padding[0], o.dilation[0], o.output_padding[0]);
  const int64_t ow = size(xs[3], ws[3], o.stride[1], o.padding[1], o.dilation[1], o.output_padding[1]);
  if (o.padding[0] < 0 || o.padding[1] < 0 || oh < 1 || ow < 1)
    fail<ShapeError>("[conv_transpose2d] the output would be {}x{}; use less padding.", oh, ow);
  if (o.output_padding[0] < 0 || o.output_padding[1] < 0 ||
      o.output_padding[0] >= std::max(o.stride[0], o.dilation[0]) ||
      o.output_padding[1] >= std::max(o.stride[1], o.dilation[1]))
    fail<ValueError>("[conv_transpose2d] output_padding ({}, {}) must be smaller than stride or dilation.",
                     o.output_padding[0], o.output_padding[1]);
  // In the relation y = conv(x, weight) the transposed operation's input plays y and its output plays x.
  return input_gradient(x, weight, bias, {o.stride, o.padding, o.dilation, o.groups,
                                          {xs[0], ws[1] * o.groups, oh, ow}, ws, xs});
}

}  // namespace levin
