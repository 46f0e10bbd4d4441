#include "common.h"

#include "../../errors.h"
#include "../values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/trace.h>

namespace levin::ops {

namespace {

int category(DType t) { return t == DType::boolean ? 0 : is_complex(t) ? 3 : is_floating(t) ? 2 : 1; }

/// Elementwise kernels read rows; a large tensor whose rows are columns in memory is faster if it is transposed first.
Tensor readable(const Tensor& x) {
  constexpr int64_t big = 4096;
  if (x.is_contiguous() || x.numel() < big) return x;
  const int last = x.dim() - 1;
  const bool columns = x.sizes()[last] > 1 && x.strides()[last] > 1;
  bool unit = false;
  for (int i = 0; i < last; ++i) unit = unit || (x.strides()[i] == 1 && x.sizes()[i] > 1);
  if (!columns || !unit) return x;
  no_grad guard;
  return contiguous(x);
}

void refuse_complex(const char* op, const Tensor& x) {
  if (x.is_complex()) [[unlikely]] levin::detail::refuse_dtype(op, x.dtype(), "real types");
}

}  // namespace

DType result_type(const Tensor& a, const Tensor& b) {
  const DType ta = a.dtype(), tb = b.dtype();
  if (ta == tb) return ta;
  if ((a.dim() == 0) == (b.dim() == 0)) return promote_types(ta, tb);
  const DType strong = a.dim() == 0 ? tb : ta, weak = a.dim() == 0 ? ta : tb;
  if (category(weak) <= category(strong)) return strong;
  return is_complex(weak) && is_floating(strong) ? complex_type_of(strong) : promote_types(strong, weak);
}

Device common_device(const char* op, const Tensor& a, const Tensor& b) {
  if (a.device() != b.device()) [[unlikely]] {
    fail<DeviceError>("[{}] the operands are on {} and {}; move one with x.to(device).", op, a.device(), b.device());
  }
  return a.device();
}

void refuse_bool(const char* op, DType t, const char* instead) {
  if (t == DType::boolean) [[unlikely]]
    fail<DTypeError>("[{}] bool is not accepted; use {}.", op, instead);
}

DType bits_type(const char* op, DType t) {
  if (is_floating(t)) [[unlikely]] {
    fail<DTypeError>(
        "[{}] {} is not accepted, only bool and integers; compare first, e.g. (x > 0) & m, or use x.to(kInt64).", op,
        t);
  }
  return t;
}

bool is_exact_parameter(const Scalar& value, DType t) {
  if (is_differentiable(t) || t == DType::boolean || value.is_floating()) return true;
  constexpr int64_t most = int64_t{1} << 53;
  const int64_t v = value.to<int64_t>();
  return -most <= v && v <= most;
}

void check_factor(const char* op, const Scalar& factor, DType t) {
  if (factor.is_floating() && !is_differentiable(t)) {
    fail<DTypeError>("[{}] a floating factor does not fit {} tensors; use an integer or x.to(kFloat32).", op, t);
  }
}

Tensor fresh(const Shape& sizes, DType dtype, Device device) {
  auto storage = make_intrusive<Storage>(static_cast<std::size_t>(sizes.numel() * size_of(dtype)), device);
  Tensor t(make_intrusive<TensorImpl>(std::move(storage), 0, sizes, contiguous_strides(sizes), dtype));
  return t;
}

Tensor unary(const kernels::UnaryKernel& kernel, const Tensor& x, DType out, double p0, double p1) {
  refuse_complex(kernel.name(), x);
  Tensor y = fresh(x.sizes(), out, x.device());
  launch(kernel, y.device(), {y.tensor_view(), readable(x).tensor_view(), p0, p1});
  LEVIN_TRACE(kernel.name(), {x}, {y}, {{"p0", p0}, {"p1", p1}});
  return y;
}

Tensor binary(const kernels::BinaryKernel& kernel, const char* op, const Tensor& a, const Tensor& b, DType compute,
              DType out, double p0, double p1) {
  for (const Tensor* x : {&a, &b}) refuse_complex(op, *x);
  const Device device = common_device(op, a, b);
  Tensor y = a.sizes() == b.sizes() ? fresh(a.sizes(), out, device)
                                    : fresh(broadcast_shapes(a.sizes(), b.sizes(), op), out, device);
  launch(kernel, device, {y.tensor_view(), readable(a).tensor_view(), readable(b).tensor_view(), compute, p0, p1});
  LEVIN_TRACE(kernel.name(), {a, b}, {y}, {{"compute", compute}, {"p0", p0}, {"p1", p1}});
  return y;
}

Tensor binary(const kernels::BinaryKernel& kernel, const Tensor& x, const Scalar& value, DType compute, DType out,
              double p0, bool swapped) {
  refuse_complex(kernel.name(), x);
  Tensor y = fresh(x.sizes(), out, x.device());
  const TensorView n = number(value, compute), v = x.tensor_view();
  launch(kernel, y.device(), {y.tensor_view(), swapped ? n : v, swapped ? v : n, compute, p0, 0.0});
  LEVIN_TRACE(kernel.name(), {x}, {y},
              {{"compute", compute}, {"p0", p0}, {"value", value}, {"swapped", swapped}});
  return y;
}

Tensor ternary(const kernels::TernaryKernel& kernel, const char* op, const Tensor& a, const Tensor& b, const Tensor& c,
               DType compute, double p0) {
  for (const Tensor* x : {&a, &b, &c}) refuse_complex(op, *x);
  const Device device = common_device(op, a, b);
  common_device(op, a, c);
  const Shape sizes = broadcast_shapes(broadcast_shapes(a.sizes(), b.sizes(), op), c.sizes(), op);
  Tensor y = fresh(sizes, compute, device);
  launch(kernel, device, {y.tensor_view(), a.tensor_view(), b.tensor_view(), c.tensor_view(), compute, p0});
  LEVIN_TRACE(kernel.name(), {a, b, c}, {y}, {{"compute", compute}, {"p0", p0}});
  return y;
}

void save(Context& c, Saved saved, const Tensor& x, Tensor& y) {
  if (saved == Saved::x) c.save(x);
  if (saved == Saved::y) c.save_output(y);
}

Grads zero_gradient(Context&, const Tensor& g) { return {zeros_like(g)}; }

}  // namespace levin::ops
