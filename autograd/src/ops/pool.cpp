// Pooling. The gradient of max pooling and the selection of elements by index are each other's derivative.

#include "../errors.h"
#include "composed/trace_attributes.h"
#include "values.h"

#include <levin/autograd/ops/conv.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/kernels/pool.h>

namespace levin {

using namespace ops;

namespace {

using kernels::PoolGeometry;

struct PoolOptions {
  Tuple<2> kernel, stride, padding, dilation;
  bool ceil_mode;
};

/// Computes the output size along one axis; with ceil_mode the last window must begin inside the input or its left
/// padding.
int64_t pooled_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode) {
  const int64_t room = in + 2 * padding - dilation * (kernel - 1) - 1;
  if (room < 0 && !(ceil_mode && room + stride > 0)) return 0;
  const int64_t out = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  return ceil_mode && (out - 1) * stride >= in + padding ? out - 1 : out;
}

void check_values(const char* op, const Tensor& x, const PoolOptions& o) {
  if (!x.is_floating()) fail<DTypeError>("[{}] x is {}; a floating type is needed.", op, x.dtype());
  if (x.dim() != 3 && x.dim() != 4)
    fail<ShapeError>("[{}] x is {}; it needs the dimensions (C, H, W) or (B, C, H, W).", op, x.sizes());
  if (o.kernel[0] < 1 || o.kernel[1] < 1 || o.stride[0] < 1 || o.stride[1] < 1 || o.dilation[0] < 1 ||
      o.dilation[1] < 1)
    fail<ValueError>("[{}] kernel ({}, {}), stride ({}, {}) and dilation ({}, {}) must be 1 or more.", op, o.kernel[0],
                     o.kernel[1], o.stride[0], o.stride[1], o.dilation[0], o.dilation[1]);
  for (const auto& [padding, kernel] : {std::pair{o.padding[0], o.kernel[0]}, std::pair{o.padding[1], o.kernel[1]}}) {
    if (padding < 0)
      fail<ValueError>("[{}] padding {} is negative; use 0 or more, or crop with narrow().", op, padding);
    if (2 * padding > kernel)
      fail<ValueError>(
          "[{}] padding {} is more than half of the kernel {}; windows would hold nothing but padding. Use {} at most, "
          "or pad().",
          op, padding, kernel, kernel / 2);
  }
}

/// Checks that every window holds an element; dilated windows may step over a small input.
void check_windows(const char* op, int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding,
                   int64_t dilation) {
  for (int64_t i = 0; i < out; ++i) {
    const int64_t start = i * stride - padding;
    const int64_t first = start < 0 ? start + (-start + dilation - 1) / dilation * dilation : start;
    if (first >= in || first > start + (kernel - 1) * dilation)
      fail<ShapeError>("[{}] window {} of size {} with dilation {} and padding {} holds no element of {}.", op, i,
                       kernel, dilation, padding, in);
  }
}

PoolGeometry geometry_of(const char* op, const Tensor& x, const PoolOptions& o) {
  check_values(op, x, o);
  PoolGeometry g{.kernel_h = o.kernel[0],
                 .kernel_w = o.kernel[1],
                 .stride_h = o.stride[0],
                 .stride_w = o.stride[1],
                 .padding_h = o.padding[0],
                 .padding_w = o.padding[1],
                 .dilation_h = o.dilation[0],
                 .dilation_w = o.dilation[1]};
  g.h = x.size(-2);
  g.w = x.size(-1);
  g.planes = x.dim() == 4 ? x.size(0) * x.size(1) : x.size(0);
  g.oh = pooled_size(g.h, g.kernel_h, g.stride_h, g.padding_h, g.dilation_h, o.ceil_mode);
  g.ow = pooled_size(g.w, g.kernel_w, g.stride_w, g.padding_w, g.dilation_w, o.ceil_mode);
  if (g.oh < 1 || g.ow < 1)
    fail<ShapeError>("[{}] the kernel {}x{} with padding ({}, {}) is larger than the input {}x{}.", op, g.kernel_h,
                     g.kernel_w, g.padding_h, g.padding_w, g.h, g.w);
  if (g.dilation_h > 1) check_windows(op, g.h, g.oh, g.kernel_h, g.stride_h, g.padding_h, g.dilation_h);
  if (g.dilation_w > 1) check_windows(op, g.w, g.ow, g.kernel_w, g.stride_w, g.padding_w, g.dilation_w);
  return g;
}

Shape with_plane(const Shape& sizes, int64_t h, int64_t w) {
  Shape s = sizes;
  s[s.size() - 2] = h;
  s[s.size() - 1] = w;
  return s;
}

Tensor pick(const Tensor& x, const Tensor& indices, const PoolGeometry& g);

/// Computes dx from dy and the indices of the maxima.
Tensor unpool(const Tensor& dy, const Tensor& indices, const PoolGeometry& g) {
  Tensor dx = empty(with_plane(dy.sizes(), g.h, g.w), like(dy));
  launch(kernels::max_pool2d_backward, dy.device(),
         {dx.tensor_view(), dense(dy).tensor_view(), indices.tensor_view(), g});
  if (Context* c = record("max_pool2d_backward", dx, {dy}, [](Context& k, const Tensor& gg) -> Grads {
        return {pick(gg, k.saved(0), k.get<PoolGeometry>())};
      }))
    c->save(indices).set(g);
  return dx;
}

Tensor pick(const Tensor& x, const Tensor& indices, const PoolGeometry& g) {
  Tensor y = empty(with_plane(x.sizes(), g.oh, g.ow), like(x));
  launch(kernels::max_pool2d_pick, x.device(), {y.tensor_view(), indices.tensor_view(), dense(x).tensor_view(), g});
  if (Context* c = record("max_pool2d_pick", y, {x}, [](Context& k, const Tensor& gy) -> Grads {
        return {unpool(gy, k.saved(0), k.get<PoolGeometry>())};
      }))
    c->save(indices).set(g);
  return y;
}

}  // namespace

Tensor max_pool2d(const Tensor& x, Tuple<2> kernel, const MaxPool2dOptions& o) {
  LEVIN_TRACE_CALL(max_pool2d(x, kernel, o), "max_pool2d", {x}, LEVIN_MAXIMUM_ATTRIBUTES(kernel, o));
  const PoolGeometry g =
      geometry_of("max_pool2d", x, {kernel, o.stride.value_or(kernel), o.padding, o.dilation, o.ceil_mode});
  if (needs_float32(kernels::max_pool2d, x)) return to(max_pool2d(to(x, kFloat32), kernel, o), x.dtype());
  Tensor y = empty(with_plane(x.sizes(), g.oh, g.ow), like(x)), indices;
  if (would_record({x})) indices = empty(y.sizes(), {.dtype = g.index_type(), .device = x.device()});
  launch(kernels::max_pool2d, x.device(), {y.tensor_view(), view_of(indices), dense(x).tensor_view(), g});
  if (Context* c = record("max_pool2d", y, {x}, [](Context& k, const Tensor& dy) -> Grads {
        return {unpool(dy, k.saved(0), k.get<PoolGeometry>())};
      }))
    c->save(indices).set(g);
  return y;
}

namespace {

struct AvgPlan {
  PoolGeometry geometry;
  bool count_include_pad;
};

Tensor average(const Tensor& x, const AvgPlan& plan);

Tensor spread(const Tensor& dy, const AvgPlan& plan) {
  Tensor dx = empty(with_plane(dy.sizes(), plan.geometry.h, plan.geometry.w), like(dy));
  launch(kernels::avg_pool2d_backward, dy.device(),
         {dense(dy).tensor_view(), dx.tensor_view(), plan.geometry, plan.count_include_pad});
  if (Context* c = record("avg_pool2d_backward", dx, {dy}, [](Context& k, const Tensor& gg) -> Grads {
        return {average(gg, k.get<AvgPlan>())};
      }))
    c->set(plan);
  return dx;
}

Tensor average(const Tensor& x, const AvgPlan& plan) {
  Tensor y = empty(with_plane(x.sizes(), plan.geometry.oh, plan.geometry.ow), like(x));
  launch(kernels::avg_pool2d, x.device(),
         {y.tensor_view(), dense(x).tensor_view(), plan.geometry, plan.count_include_pad});
  if (Context* c = record("avg_pool2d", y, {x}, [](Context& k, const Tensor& dy) -> Grads {
        return {spread(dy, k.get<AvgPlan>())};
      }))
    c->set(plan);
  return y;
}

}  // namespace

Tensor avg_pool2d(const Tensor& x, Tuple<2> kernel, const AvgPool2dOptions& o) {
  LEVIN_TRACE_CALL(avg_pool2d(x, kernel, o), "avg_pool2d", {x}, LEVIN_AVERAGE_ATTRIBUTES(kernel, o));
  const PoolGeometry g = geometry_of("avg_pool2d", x, {kernel, o.stride.value_or(kernel), o.padding, 1, o.ceil_mode});
  if (needs_float32(kernels::avg_pool2d, x)) return to(avg_pool2d(to(x, kFloat32), kernel, o), x.dtype());
  return average(x, {g, o.count_include_pad});
}

}  // namespace levin
