// Products with int8 weights: the CPU has kernels, other devices compose the same values from float32 operations.

#include "../../errors.h"
#include "autograd/src/ops/values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/quantized.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/kernels/quantized/int8.h>

#include <cfloat>
#include <limits>

namespace levin {

using namespace ops;

namespace {

constexpr int64_t kMostTerms = 65536;  // whose sum of products up to 255 * 127 fits int32

void check_weight(const char* op, const Tensor& x, const Tensor& weight, const Tensor& scale, const Tensor& bias,
                  int dims) {
  check_floating(op, x);
  check_floating(op, scale, "scale");
  if (bias.defined()) check_floating(op, bias, "bias");
  if (weight.dtype() != kInt8)
    fail<DTypeError>("[{}] weight is {}; make it int8 with quantize_weight_int8.", op, weight.dtype());
  Shape sizes = Shape::filled(dims, 1);
  if (weight.dim() == dims) sizes[0] = weight.sizes()[0];
  if (weight.dim() != dims || scale.sizes() != sizes || (bias.defined() && bias.sizes() != Shape{sizes[0]}))
    fail<ShapeError>(
        "[{}] weight is {}, scale {}, bias {}: a weight of {} dimensions has a scale and a bias for each output "
        "channel.",
        op, weight.sizes(), scale.sizes(), bias.defined() ? to_string(bias.sizes()) : "undefined", dims);
  check_same_device(op, {"x", x}, {"weight", weight});
}

void check_terms(const char* op, int64_t terms) {
  if (terms > kMostTerms)
    fail<ShapeError>("[{}] a sum of {} terms may not fit int32; up to {} do. Use the weight-only mode.", op, terms,
                     kMostTerms);
}

/// Backward of a dynamic product.
Grads refuse_backward(Context&, const Tensor&) {
  throw GradError(
      "[int8_dynamic] a product of quantized values has no derivative. Train with float32 weights and quantize "
      "afterwards, or quantize weight-only.");
}

/// Rounds lines along the axes `axes` of x as LinearInt8Args states it, in float32.
Tensor round_to_steps(const Tensor& x, const Axes& axes) {
  const Tensor low = clamp(amin(x, axes, true), std::nullopt, 0.0), high = clamp(amax(x, axes, true), 0.0);
  const Tensor step = clamp(sub(div(high, 255.0), div(low, 255.0)), FLT_MIN);
  const Tensor zero = clamp(round(div(neg(low), step)), 0.0, 255.0);
  const Tensor finite = isfinite(sum(mul(x, 0.0), axes, true));
  const Tensor value = mul(sub(clamp(add(round(div(x, step)), zero), 0.0, 255.0), zero), step);
  return where(finite, value, std::numeric_limits<double>::quiet_NaN());
}

Tensor in_float32(const Tensor& t) { return t.defined() && t.dtype() != kFloat32 ? to(t, kFloat32) : t; }

Tensor dequantized(const Tensor& values, const Tensor& scale, DType dtype) {
  no_grad guard;
  return mul(to(values, dtype), to(scale, dtype));
}

/// Runs a kernel of linear layers on rows (M, K) of float32.
Tensor linear_rows(const kernels::Kernel<void(const kernels::LinearInt8Args&, Stream&)>& kernel, const Tensor& x,
                   const Tensor& weight, const Tensor& scale, const Tensor& bias) {
  Tensor y = empty({x.sizes()[0], weight.sizes()[0]}, like(x));
  launch(kernel, x.device(),
         {y.tensor_view(), dense(x).tensor_view(), dense(weight).tensor_view(), dense(scale).tensor_view(),
          view_of(dense(bias))});
  return y;
}

void check_columns(const char* op, const Tensor& x, const Tensor& weight) {
  if (x.dim() == 0 || x.sizes().back() != weight.sizes()[1])
    fail<ShapeError>("[{}] x is {}, weight is {}: the last size of x must be the weight's second.", op, x.sizes(),
                     weight.sizes());
}

/// Calls compute for x as float32 rows (M, K), and gives the result the leading axes and the dtype of x.
template <class F>
Tensor by_rows(const char* op, const Tensor& x, const Tensor& weight, F&& compute) {
  check_columns(op, x, weight);
  Shape sizes = x.sizes();
  sizes[x.dim() - 1] = weight.sizes()[0];
  const int64_t count = x.dim() == 1 ? 1 : leading(x, 1).numel();
  const Tensor rows = reshape(x, {count, weight.sizes()[1]});
  return to(reshape(compute(in_float32(rows)), sizes), x.dtype());
}

Tensor weight_only_rows(const Tensor& x, const Tensor& weight, const Tensor& scale, const Tensor& bias) {
  if (!kernels::linear_int8_weight_only.has(x.device().type))
    return linear(x, dequantize_weight_int8(weight, scale), bias);
  Tensor y = linear_rows(kernels::linear_int8_weight_only, x, weight, scale, bias);
  if (Context* c = record("linear_int8_weight_only", y, {x, bias}, [](Context& k, const Tensor& g) -> Grads {
        return {k.needs(0) ? matmul(g, dequantize_weight_int8(k.saved(0), k.saved(1))) : Tensor(),
                k.needs(1) ? sum(g, {0}) : Tensor()};
      }))
    c->save(weight, scale);
  return y;
}

Tensor dynamic_rows(const char* name, const Tensor& x, const Tensor& weight, const Tensor& scale, const Tensor& bias) {
  no_grad guard;
  check_terms(name, weight.sizes()[1]);
  if (kernels::linear_int8_dynamic.has(x.device().type))
    return linear_rows(kernels::linear_int8_dynamic, x, weight, scale, bias);
  if (x.numel() == 0) return linear(x, dequantize_weight_int8(weight, scale), bias);
  return linear(round_to_steps(x, {1}), dequantize_weight_int8(weight, scale), bias);
}

/// Sizes of the output, checked by the operation in float32 on a tensor without elements.
Shape conv_sizes(const char* op, const Tensor& x, const Tensor& weight, const Conv2dOptions& o) {
  if (x.dim() != 4 || x.sizes()[1] != weight.sizes()[1] * o.groups || o.groups < 1 || weight.sizes()[0] % o.groups != 0)
    fail<ShapeError>("[{}] x is {}, and weight {} with {} groups takes images of {} channels.", op, x.sizes(),
                     weight.sizes(), o.groups, weight.sizes()[1] * o.groups);
  Shape sizes{x.sizes()[0], weight.sizes()[0], 0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    const int axis = static_cast<int>(i) + 2;
    const int64_t room =
        x.sizes()[axis] + 2 * o.padding[i] - o.dilation[i] * (weight.sizes()[axis] - 1) - 1;
    if (o.stride[i] < 1 || o.dilation[i] < 1 || o.padding[i] < 0 || room < 0)
      fail<ShapeError>(
          "[{}] the kernel {}x{} with padding ({}, {}), stride ({}, {}) and dilation ({}, {}) does not fit the input "
          "{}x{}.",
          op, weight.sizes()[2], weight.sizes()[3], o.padding[0], o.padding[1], o.stride[0], o.stride[1], o.dilation[0],
          o.dilation[1], x.sizes()[2], x.sizes()[3]);
    sizes[axis] = room / o.stride[i] + 1;
  }
  return sizes;
}

Tensor dynamic_images(const Tensor& x, const Tensor& weight, const Tensor& scale, const Tensor& bias,
                      const Conv2dOptions& o, const Shape& sizes) {
  no_grad guard;
  if (!kernels::conv2d_int8_dynamic.has(x.device().type))
    return conv2d(x.numel() == 0 ? x : round_to_steps(x, {1, 2, 3}), dequantize_weight_int8(weight, scale), bias, o);
  Tensor y = empty(sizes, like(x));
  launch(kernels::conv2d_int8_dynamic, x.device(),
         {y.tensor_view(), dense(x).tensor_view(), dense(weight).tensor_view(), dense(scale).tensor_view(),
          view_of(dense(bias)), o.stride[0], o.stride[1], o.padding[0], o.padding[1], o.dilation[0], o.dilation[1],
          o.groups});
  return y;
}

}  // namespace

QuantizedWeight quantize_weight_int8(const Tensor& weight) {
  check_floating("quantize_weight_int8", weight, "weight");
  if (weight.dim() < 1)
    throw ShapeError("[quantize_weight_int8] weight is a number; a scale belongs to each index of its first axis.");
  no_grad guard;
  const Tensor w = to(detach(weight), kFloat32);
  Shape sizes = Shape::filled(w.dim(), 1);
  sizes[0] = w.sizes()[0];
  if (w.numel() == 0) return {to(w, kInt8), ones(sizes, {.device = w.device()})};
  const Tensor greatest = amax(abs(reshape(w, {sizes[0], -1})), {1});  // (O)
  if (!isfinite(greatest).all().item<bool>())
    throw ValueError("[quantize_weight_int8] the weight has a value that is not finite. Use other weights.");
  // A scale below the normal numbers could not divide.
  const Tensor scale = reshape(where(greatest > 0.0, clamp(div(greatest, 127.0), FLT_MIN), ones_like(greatest)), sizes);
  return {to(clamp(round(div(w, scale)), -127.0, 127.0), kInt8), scale};
}

Tensor dequantize_weight_int8(const Tensor& values, const Tensor& scale) {
  return dequantized(values, scale, kFloat32);
}

Tensor linear_int8_weight_only(const Tensor& x, const Tensor& weight, const Tensor& scale, const Tensor& bias) {
  const char* op = "linear_int8_weight_only";
  check_weight(op, x, weight, scale, bias, 2);
  if (x.dtype() == kFloat64) {
    check_columns(op, x, weight);
    return linear(x, dequantized(weight, scale, kFloat64), rounded(bias, kFloat64));
  }
  return by_rows(op, x, weight, [&](const Tensor& rows) {
    return weight_only_rows(rows, weight, in_float32(scale), in_float32(bias));
  });
}

Tensor linear_int8_dynamic(const Tensor& x, const Tensor& weight, const Tensor& scale, const Tensor& bias) {
  const char* op = "linear_int8_dynamic";
  check_weight(op, x, weight, scale, bias, 2);
  return by_rows(op, x, weight, [&](const Tensor& rows) {
    const Tensor y = dynamic_rows(op, rows, weight, in_float32(scale), in_float32(bias));
    record(op, y, {rows, bias}, refuse_backward);
    return y;
  });
}

Tensor conv2d_int8_weight_only(const Tensor& x, const Tensor& weight, const Tensor& scale, const Tensor& bias,
                               const Conv2dOptions& options) {
  check_weight("conv2d_int8_weight_only", x, weight, scale, bias, 4);
  if (x.dtype() == kFloat64)
    return conv2d(x, dequantized(weight, scale, kFloat64), rounded(bias, kFloat64), options);
  const Tensor wide = in_float32(x);
  return to(conv2d(wide, dequantize_weight_int8(weight, scale), in_float32(bias), options), x.dtype());
}

Tensor conv2d_int8_dynamic(const Tensor& x, const Tensor& weight, const Tensor& scale, const Tensor& bias,
                           const Conv2dOptions& options) {
  const char* op = "conv2d_int8_dynamic";
  check_weight(op, x, weight, scale, bias, 4);
  if (x.dim() == 3) return squeeze(conv2d_int8_dynamic(unsqueeze(x, 0), weight, scale, bias, options), 0);
  const Shape sizes = conv_sizes(op, x, weight, options);
  check_terms(op, weight.sizes()[1] * weight.sizes()[2] * weight.sizes()[3]);
  const Tensor wide = in_float32(x);
  const Tensor y = dynamic_images(wide, weight, in_float32(scale), in_float32(bias), options, sizes);
  record(op, y, {wide, bias}, refuse_backward);
  return to(y, x.dtype());
}

}  // namespace levin
