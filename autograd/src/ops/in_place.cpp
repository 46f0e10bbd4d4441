// In-place operations. Without recording, the kernel writes straight into the tensor's memory; a recorded one computes
// a new value with the public operation and moves it into the tensor.

#include "../errors.h"
#include "elementwise/common.h"
#include "spectral/complex.h"

#include <levin/autograd/ops.h>
#include <levin/autograd/trace.h>
#include <levin/kernels/copy.h>
#include <levin/kernels/creation.h>

#include <limits>

namespace levin {

using namespace ops;

namespace {

/// Copies a value that announced operations computed.
const Tensor& write_traced(const Tensor& x, const Tensor& value) {
  {
    const TraceGuard off(nullptr);
    x.copy_(value);
  }
  LEVIN_TRACE("copy_", {value}, {x});
  return x;
}

/// Runs `direct` on x's memory, or `recorded` if the operation has to be added to the graph.
template <class Direct, class Recorded>
const Tensor& edit(const char* name, const Tensor& x, std::initializer_list<InputRef> others, Direct&& direct,
                   Recorded&& recorded) {
  if (tracing()) [[unlikely]] return write_traced(x, recorded(x));
  if (begin_in_place(name, x, others)) return replace_in_place(name, x, recorded);
  Stream stream = current_stream(x.device());
  direct(stream);
  end_in_place(x);
  return x;
}

void check_type(const char* name, const Tensor& x, DType result) {
  const DType t = x.dtype();
  const bool fits = is_complex(t) || (is_floating(t) && !is_complex(result)) ||
                    (!is_differentiable(result) && (t != DType::boolean || result == DType::boolean));
  if (!fits) [[unlikely]] {
    fail<DTypeError>("[{}] a result of type {} does not fit into a tensor of type {}; convert it first with x.to({}).",
                     name, result, t, result);
  }
}

/// Throws if the operand would enlarge x, and copies an operand that overlaps x's memory in another layout.
Tensor operand_of(const char* name, const Tensor& x, const Tensor& other) {
  common_device(name, x, other);
  if (x.sizes() == other.sizes()) {
    const bool same = x.storage_offset() == other.storage_offset() && x.strides() == other.strides();
    if (same || !x.shares_storage(other)) return other;
  } else if (broadcast_shapes(x.sizes(), other.sizes(), name) != x.sizes()) {
    fail<ShapeError>("[{}] the result has shape {}, which does not fit into the tensor of shape {}.", name,
                     broadcast_shapes(x.sizes(), other.sizes(), name), x.sizes());
  }
  if (!x.shares_storage(other)) return other;
  no_grad guard;
  return clone(other);
}

/// Complex results are compositions, which are copied into x.
template <class Recorded>
const Tensor& edit_complex(const char* name, const Tensor& x, std::initializer_list<InputRef> others,
                           Recorded&& recorded) {
  return edit(name, x, others, [&](Stream&) { x.copy_(recorded(x)); }, recorded);
}

using BinaryOp = Tensor (*)(const Tensor&, const Tensor&);
using NumberOp = Tensor (*)(const Tensor&, const Scalar&);

template <class Recorded>
const Tensor& edit_binary(const char* name, const Tensor& x, const Tensor& other, const kernels::BinaryKernel& kernel,
                          DType compute, double p0, Recorded&& recorded) {
  check_type(name, x, compute);
  if (is_complex(compute)) [[unlikely]] return edit_complex(name, x, {other}, recorded);
  return edit(name, x, {other}, [&](Stream& stream) {
    const Tensor safe = operand_of(name, x, other);
    kernel({x.tensor_view(), x.tensor_view(), safe.tensor_view(), compute, p0, 0.0}, stream);
  }, recorded);
}

template <class Recorded>
const Tensor& edit_number(const char* name, const Tensor& x, const Scalar& value, const kernels::BinaryKernel& kernel,
                          DType compute, double p0, Recorded&& recorded) {
  check_type(name, x, compute);
  if (is_complex(compute)) [[unlikely]] return edit_complex(name, x, {}, recorded);
  return edit(name, x, {}, [&](Stream& stream) {
    kernel({x.tensor_view(), x.tensor_view(), number(value, compute), compute, p0, 0.0}, stream);
  }, recorded);
}

#define LEVIN_UNARY_ROW(name, types, ...) [[maybe_unused]] constexpr Types name##_types = Types::types;
#define LEVIN_ACTIVATION_ROW(name, types, ...) [[maybe_unused]] constexpr Types name##_types = Types::types;
#include <levin/kernels/elementwise_rows.h>

const Tensor& edit_unary(const char* name, const Tensor& x, Types types, const kernels::UnaryKernel& kernel,
                         Tensor (*op)(const Tensor&)) {
  if (x.is_complex()) return edit_complex(name, x, {}, op);
  if (types == Types::floating) check_type(name, x, floating_type(x.dtype()));
  if (types == Types::numeric) refuse_bool(name, x.dtype(), "logical_not, or x.to(kUInt8)");
  if (types == Types::rounding && !x.is_floating()) return x;
  if (activate_in_place(name, kernel, x)) return x;
  return edit(name, x, {}, [&](Stream& stream) { kernel({x.tensor_view(), x.tensor_view()}, stream); }, op);
}

/// Replaces x's values by those of f(x), which are computed in new memory.
template <class F>
const Tensor& edit_by(const char* name, const Tensor& x, std::initializer_list<InputRef> others, const F& f) {
  const auto checked = [&](const Tensor& old) {
    const Tensor y = f(old);
    check_type(name, x, y.dtype());
    if (y.sizes() != x.sizes())
      fail<ShapeError>("[{}] the result has shape {}, which does not fit into the tensor of shape {}.", name, y.sizes(),
                       x.sizes());
    return y;
  };
  return edit(
      name, x, others,
      [&](Stream& stream) {
        no_grad guard;
        const Tensor y = checked(x);
        kernels::copy({x.tensor_view(), y.tensor_view()}, stream);
      },
      checked);
}

}  // namespace

const Tensor& Tensor::add_(const Tensor& other, const Scalar& alpha) const {
  const DType t = result_type(*this, other);
  check_factor("add_", alpha, t);
  if (!is_exact_parameter(alpha, t)) return add_(levin::mul(levin::to(other, t), alpha));
  return edit_binary("add_", *this, other, kernels::add, t, alpha.to<double>(),
                     [&](const Tensor& x) { return levin::add(x, other, alpha); });
}

const Tensor& Tensor::add_(const Scalar& other) const {
  return edit_number("add_", *this, other, kernels::add, other.promote_with(dtype()), 1.0,
                     [&](const Tensor& x) { return levin::add(x, other); });
}

const Tensor& Tensor::sub_(const Tensor& other) const {
  refuse_bool("sub_", result_type(*this, other), "logical_xor");
  return edit_binary("sub_", *this, other, kernels::add, result_type(*this, other), -1.0,
                     [&](const Tensor& x) { return levin::sub(x, other); });
}

const Tensor& Tensor::sub_(const Scalar& other) const {
  refuse_bool("sub_", other.promote_with(dtype()), "logical_xor");
  return edit_number("sub_", *this, other, kernels::add, other.promote_with(dtype()), -1.0,
                     [&](const Tensor& x) { return levin::sub(x, other); });
}

const Tensor& Tensor::mul_(const Tensor& other) const {
  return edit_binary("mul_", *this, other, kernels::mul, result_type(*this, other), 1.0,
                     [&](const Tensor& x) { return levin::mul(x, other); });
}

const Tensor& Tensor::mul_(const Scalar& other) const {
  return edit_number("mul_", *this, other, kernels::mul, other.promote_with(dtype()), 1.0,
                     [&](const Tensor& x) { return levin::mul(x, other); });
}

const Tensor& Tensor::div_(const Tensor& other) const {
  return edit_binary("div_", *this, other, kernels::div, floating_type(result_type(*this, other)), 1.0,
                     [&](const Tensor& x) { return levin::div(x, other); });
}

const Tensor& Tensor::div_(const Scalar& other) const {
  return edit_number("div_", *this, other, kernels::div, floating_type(other.promote_with(dtype())), 1.0,
                     [&](const Tensor& x) { return levin::div(x, other); });
}

#define LEVIN_BITWISE_ROW(name, ...)                                                                      \
  const Tensor& Tensor::name##_(const Tensor& other) const {                                         \
    const DType t = bits_type(#name "_", result_type(*this, other));                                 \
    return edit_binary(#name "_", *this, other, kernels::name, t, 1.0,                               \
                       [&](const Tensor& x) { return levin::name(x, other); });                      \
  }                                                                                                  \
  const Tensor& Tensor::name##_(const Scalar& other) const {                                         \
    const DType t = bits_type(#name "_", other.promote_with(dtype()));                               \
    return edit_number(#name "_", *this, other, kernels::name, t, 1.0,                               \
                       [&](const Tensor& x) { return levin::name(x, other); });                      \
  }
#include <levin/kernels/elementwise_rows.h>

#define LEVIN_IN_PLACE_METHOD(name)                                                                  \
  const Tensor& Tensor::name##_() const {                                                            \
    return edit_unary(#name "_", *this, name##_types, kernels::name,                                 \
                      [](const Tensor& x) { return levin::name(x); });                               \
  }
#include <levin/core/tensor_methods.h>

#define LEVIN_INPUTS(...) \
  { __VA_ARGS__ }
#define LEVIN_EDIT(name, tensors, parameters, ...)                                              \
  const Tensor& Tensor::name##_ parameters const {                                              \
    return edit_by(#name "_", *this, LEVIN_INPUTS tensors,                                      \
                   [&](const Tensor& x) { return levin::name(x __VA_OPT__(, ) __VA_ARGS__); }); \
  }
#include <levin/core/tensor_methods.h>

const Tensor& Tensor::bitwise_not_() const {
  return dtype() == kBool ? bitwise_xor_(true) : bitwise_xor_(-1);
}

const Tensor& Tensor::clamp_(std::optional<Scalar> min, std::optional<Scalar> max) const {
  if (!min && !max) throw ValueError("[clamp_] neither min nor max is given; name one of them.");
  refuse_bool("clamp_", dtype(), "logical_and or logical_or");
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const auto& bound : {min, max})
    if (bound) check_type("clamp_", *this, bound->promote_with(dtype()));
  const bool exact = (!min || is_exact_parameter(*min, dtype())) && (!max || is_exact_parameter(*max, dtype()));
  if (dtype() == kInt64 && !exact) return copy_(levin::clamp(*this, min, max));
  return edit(
      "clamp_", *this, {},
      [&](Stream& stream) {
        kernels::clamp(
            {tensor_view(), tensor_view(), min ? min->to<double>() : -infinity, max ? max->to<double>() : infinity},
            stream);
      },
      [&](const Tensor& x) { return levin::clamp(x, min, max); });
}

const Tensor& Tensor::masked_fill_(const Tensor& mask, const Scalar& value) const {
  if (mask.dtype() != kBool) {
    fail<DTypeError>("[masked_fill_] the mask is {}, not bool; compare it first, e.g. m != 0.", mask.dtype());
  }
  return edit(
      "masked_fill_", *this, {},
      [&](Stream& stream) {
        const Tensor safe = operand_of("masked_fill_", *this, mask);
        kernels::where({tensor_view(), safe.tensor_view(), TensorView::number(value, dtype()), tensor_view(), dtype()},
                       stream);
      },
      [&](const Tensor& x) { return levin::masked_fill(x, mask, value); });
}

const Tensor& Tensor::copy_(const Tensor& source) const {
  Tensor here = levin::to(source, device());
  if (is_complex() || here.is_complex()) here = levin::to(here, dtype());
  if (tracing()) [[unlikely]] {
    const Tensor value = levin::to(here, dtype());
    return write_traced(*this, value.sizes() == sizes() ? value : value.expand(sizes()));
  }
  return edit(
      "copy_", *this, {here},
      [&](Stream& stream) {
        if (is_same(here)) return;
        const Tensor safe = operand_of("copy_", *this, here);
        kernels::copy({parts_of(*this), parts_of(safe)}, stream);
      },
      [&](const Tensor& x) {
        const Tensor y = empty(x.sizes(), {.dtype = x.dtype(), .device = x.device()});
        {
          no_grad guard;
          y.copy_(here);
        }
        record("copy_", y, {x, here}, [](Context& k, const Tensor& g) -> Grads {
          return {k.needs(0) ? zeros_like(g) : Tensor(), k.needs(1) ? g : Tensor()};
        });
        return y;
      });
}

const Tensor& Tensor::fill_(const Scalar& value) const {
  return edit("fill_", *this, {}, [&](Stream& stream) {
    if (is_complex()) return complex_fill(*this, value);
    kernels::fill({tensor_view(), TensorView::number(value, dtype())}, stream);
  }, [&](const Tensor& x) {
    Tensor y = full_like(x, value);
    record("fill_", y, {x}, zero_gradient);
    return y;
  });
}

const Tensor& Tensor::zero_() const { return fill_(0); }

}  // namespace levin
