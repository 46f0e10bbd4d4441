// Batch norm, layer norm and their gradients. The second derivative is composed of public operations, with the same
// formula for both: they differ only in the axes over which they average.

#include "../errors.h"
#include "autocast.h"
#include "values.h"

#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/norm.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/autograd/trace.h>
#include <levin/kernels/norm.h>

#include <fmt/format.h>

namespace levin {

using namespace ops;

namespace {

/// Gradients that are not requested are undefined.
struct NormGradients {
  Tensor dx, dweight, dbias;
};

Tensor plus(const Tensor& a, const Tensor& b) { return !a.defined() ? b : !b.defined() ? a : add(a, b); }

/// Reshapes (C) to (1, C, 1, ...), which broadcasts over x.
Tensor per_channel(const Tensor& t, int dims) { return t.defined() ? along_axis(t, 1, dims) : t; }

Shape all_but_channels(int dims) {
  Shape axes{0};
  for (int d = 2; d < dims; ++d) axes.push_back(d);
  return axes;
}

/// Gradients of dx = rstd (h - mean(h) - xh mean(h xh)) with h = g weight, of dweight = sum g xh and of dbias = sum g,
/// given their gradients v, u and t (which broadcast to x, as weight does, and may be undefined). The gradient of
/// weight has x's size. All have one type: gradients of 16-bit floats go through float32.
struct SecondGradients {
  Tensor g, x, weight;
};
SecondGradients differentiate(const Tensor& g, const Tensor& x, const Tensor& weight, const Tensor& v, const Tensor& u,
                              const Tensor& t, const Shape& axes, double eps) {
  const auto average = [&](const Tensor& z) { return mean(z, axes, true); };
  const Tensor centred = sub(x, average(x)), rstd = rsqrt(add(average(square(centred)), eps)), xh = mul(centred, rstd);
  const auto project = [&](const Tensor& z) { return sub(sub(z, average(z)), mul(xh, average(mul(z, xh)))); };
  const Tensor h = weight.defined() ? mul(g, weight) : g;

  SecondGradients result;
  Tensor of_xh;
  if (v.defined()) {
    const Tensor v_xh = average(mul(v, xh)), h_xh = average(mul(h, xh));
    const Tensor of_h = mul(rstd, project(v));
    result.g = weight.defined() ? mul(of_h, weight) : of_h;
    result.weight = mul(of_h, g);
    of_xh = neg(mul(rstd, add(mul(v, h_xh), mul(h, v_xh))));
    const Tensor of_rstd = sub(sub(average(mul(v, h)), mul(average(v), average(h))), mul(v_xh, h_xh));
    result.x = neg(mul(mul(xh, square(rstd)), of_rstd));
  }
  if (u.defined()) {
    of_xh = plus(of_xh, mul(u, g));
    result.g = plus(result.g, mul(u, xh));
  }
  if (t.defined()) result.g = plus(result.g, expand(t, x.sizes()));
  if (of_xh.defined()) result.x = plus(result.x, mul(rstd, project(of_xh)));
  return result;
}

/// The gradients to compute: all of them if they are to be differentiated, since recorded outputs have to exist.
struct Wanted {
  Wanted(const Context& k, const Tensor& g, const Tensor& x, const Tensor& weight)
      : recorded(would_record({g, x, weight})), dx(recorded || k.needs(0)), dweight(recorded || k.needs(1)),
        dbias(recorded || k.needs(2)) {}
  bool recorded, dx, dweight, dbias;
};

struct BatchState {
  double eps;
  DType parameters;  ///< type of weight, bias and the running statistics
};

NormGradients batch_norm_backward(const Wanted& wanted, const Tensor& g, const Tensor& x, const Tensor& weight,
                                  const Tensor& mean, const Tensor& rstd, const BatchState& state) {
  const TensorOptions parameter{.dtype = state.parameters, .device = x.device()};
  NormGradients r{wanted.dx ? empty(x.sizes(), like(x)) : Tensor(),
                  wanted.dweight ? empty(mean.sizes(), parameter) : Tensor(),
                  wanted.dbias ? empty(mean.sizes(), parameter) : Tensor()};
  const int64_t batch = x.sizes()[0], channels = x.sizes()[1];
  launch(kernels::batch_norm_backward, x.device(),
         {view_of(r.dx), view_of(r.dweight), view_of(r.dbias), dense(g).tensor_view(), dense(x).tensor_view(),
          view_of(dense(weight)), mean.tensor_view(), rstd.tensor_view(), batch, channels,
          x.numel() / (batch * channels)});
  if (!wanted.recorded) return r;
  if (Context* c = record("batch_norm_backward", {r.dx, r.dweight, r.dbias}, {g, x, weight},
                          [](Context& k, std::span<const Tensor> grads) -> Grads {
        const Tensor g1 = k.saved(0), x1 = k.saved(1), weight1 = k.saved(2);
        const int dims = x1.dim();
        const auto channels_of = [&](const Tensor& t) { return per_channel(widened(t), dims); };
        const SecondGradients s =
            differentiate(widened(g1), widened(x1), channels_of(weight1), widened(grads[0]), channels_of(grads[1]),
                          channels_of(grads[2]), all_but_channels(dims), k.get<BatchState>().eps);
        const bool of_weight = k.needs(2) && s.weight.defined();
        return {rounded(s.g, g1.dtype()), rounded(s.x, x1.dtype()),
                of_weight ? to(sum(s.weight, all_but_channels(dims)), weight1.dtype()) : Tensor()};
      }))
    c->save(g, x, weight).set(state);
  return r;
}

NormGradients layer_norm_backward(const Wanted& wanted, const Tensor& g, const Tensor& x, const Tensor& weight,
                                  const Tensor& mean, const Tensor& rstd, const Shape& normalized, double eps) {
  NormGradients r{wanted.dx ? empty(x.sizes(), like(x)) : Tensor(),
                  wanted.dweight ? empty(normalized, like(x)) : Tensor(),
                  wanted.dbias ? empty(normalized, like(x)) : Tensor()};
  launch(kernels::layer_norm_backward, x.device(),
         {view_of(r.dx), view_of(r.dweight), view_of(r.dbias), dense(g).tensor_view(), dense(x).tensor_view(),
          view_of(dense(weight)), mean.tensor_view(), rstd.tensor_view(), mean.numel(), normalized.numel()});
  if (!wanted.recorded) return r;
  if (Context* c = record("layer_norm_backward", {r.dx, r.dweight, r.dbias}, {g, x, weight},
                          [](Context& k, std::span<const Tensor> grads) -> Grads {
        const auto& [second_eps, count] = k.get<std::pair<double, int>>();
        Shape axes;
        for (int d = -count; d < 0; ++d) axes.push_back(d);
        const Tensor g1 = k.saved(0), x1 = k.saved(1), weight1 = k.saved(2);
        const SecondGradients s = differentiate(widened(g1), widened(x1), widened(weight1), widened(grads[0]),
                                                widened(grads[1]), widened(grads[2]), axes, second_eps);
        return {rounded(s.g, g1.dtype()), rounded(s.x, x1.dtype()),
                k.needs(2) ? rounded(s.weight, x1.dtype()) : Tensor()};
      }))
    c->save(g, x, weight).set(std::pair<double, int>(eps, normalized.size()));
  return r;
}

/// Checks the shape of a parameter and that it has type `type`.
void check_parameter(const char* op, const char* name, const Tensor& p, const Tensor& x, const Shape& sizes,
                     DType type) {
  if (!p.defined()) return;
  if (p.sizes() != sizes)
    fail<ShapeError>("[{}] {} is {}, but x of {} needs {}.", op, name, p.sizes(), x.sizes(), sizes);
  if (p.dtype() != type)
    fail<DTypeError>("[{}] {} is {}, x is {}{}. Convert one with x.to(dtype).", op, name, p.dtype(), x.dtype(),
                     type == x.dtype() ? "" : fmt::format(" and other parameters are {}", name_of(type)));
}

/// Returns the type of batch norm's parameters: x's type, or float32 with a 16-bit x, as under autocast. All must have
/// the type of the first.
DType parameter_type(const Tensor& x, std::initializer_list<Tensor> parameters) {
  for (const Tensor& p : parameters)
    if (p.defined()) return is_16_bit(x) && p.dtype() == kFloat32 ? kFloat32 : x.dtype();
  return x.dtype();
}

void check_batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                      const Tensor& bias, const BatchNormOptions& options) {
  check_floating("batch_norm", x);
  if (x.dim() < 2)
    fail<ShapeError>("[batch_norm] x is {}, but (batch, channels, ...) is needed; unsqueeze an axis?", x.sizes());
  const Shape channels{x.sizes()[1]};
  const DType type = parameter_type(x, {weight, bias, running_mean, running_var});
  check_parameter("batch_norm", "weight", weight, x, channels, type);
  check_parameter("batch_norm", "bias", bias, x, channels, type);
  check_parameter("batch_norm", "running_mean", running_mean, x, channels, type);
  check_parameter("batch_norm", "running_var", running_var, x, channels, type);
  if (!options.training && !(running_mean.defined() && running_var.defined()))
    throw ValueError("[batch_norm] evaluation needs running_mean and running_var; pass them, or {.training = true}.");
  if (options.training && x.sizes()[1] != 0 && x.numel() / x.sizes()[1] < 2)
    fail<ValueError>(
        "[batch_norm] x is {}: training needs more than one value a channel for a variance. Use a larger batch, or "
        "eval().",
        x.sizes());
}

/// Stores the new running statistics `now`, which are in the same memory, or in a copy of another type or layout.
void update_running(const Tensor& running, const Tensor& now) {
  if (!running.defined()) return;
  if (running.shares_storage(now)) return end_in_place(running);
  no_grad guard;
  running.copy_(now);
}

Grads evaluation_gradients(Context& k, const Tensor& dy) {
  const Tensor g = widened(dy), x = widened(k.saved(0)), weight = widened(k.saved(1));
  const Tensor mean = k.saved(2), rstd = k.saved(3);
  const int dims = x.dim();
  const Shape axes = all_but_channels(dims);
  const DType parameters = k.get<BatchState>().parameters;
  Grads grads(3);
  if (k.needs(0)) grads[0] = to(mul(g, per_channel(weight.defined() ? mul(weight, rstd) : rstd, dims)), dy.dtype());
  if (k.needs(1)) grads[1] = to(mul(sum(mul(g, sub(x, per_channel(mean, dims))), axes), rstd), parameters);
  if (k.needs(2)) grads[2] = to(sum(g, axes), parameters);
  return grads;
}

Grads training_gradients(Context& k, const Tensor& g) {
  const Tensor x = k.saved(0), weight = k.saved(1);
  NormGradients r =
      batch_norm_backward(Wanted(k, g, x, weight), g, x, weight, k.saved(2), k.saved(3), k.get<BatchState>());
  return {r.dx, k.needs(1) ? r.dweight : Tensor(), k.needs(2) ? r.dbias : Tensor()};
}

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                  const Tensor& bias, const BatchNormOptions& options) {
  LEVIN_TRACE_CALL(batch_norm(x, running_mean, running_var, weight, bias, options), "batch_norm",
                   {x, running_mean, running_var, weight, bias},
                   {{"training", options.training}, {"eps", options.eps}});
  check_batch_norm(x, running_mean, running_var, weight, bias, options);
  if (needs_float32(kernels::batch_norm, x)) {
    const Tensor mean_now = widened(running_mean), var_now = widened(running_var);
    const Tensor y = batch_norm(widened(x), mean_now, var_now, widened(weight), widened(bias), options);
    if (options.training) update_running(running_mean, mean_now), update_running(running_var, var_now);
    return to(y, x.dtype());
  }
  const Tensor mean_now = dense(running_mean), var_now = dense(running_var);
  const int64_t batch = x.sizes()[0], channels = x.sizes()[1];
  const TensorOptions kept{.dtype = statistics_type(x), .device = x.device()};
  Tensor y = empty(x.sizes(), like(x)), mean = empty({channels}, kept), rstd = empty({channels}, kept);
  launch(kernels::batch_norm, x.device(),
         {y.tensor_view(), dense(x).tensor_view(), view_of(dense(weight)), view_of(dense(bias)), view_of(mean_now),
          view_of(var_now), mean.tensor_view(), rstd.tensor_view(), batch, channels,
          batch * channels == 0 ? 0 : x.numel() / (batch * channels), options.momentum, options.eps, options.training});
  if (options.training) update_running(running_mean, mean_now), update_running(running_var, var_now);
  if (Context* c =
          record("batch_norm", y, {x, weight, bias}, options.training ? training_gradients : evaluation_gradients))
    c->save(x, weight, mean, rstd)
        .set(BatchState{options.eps, parameter_type(x, {weight, bias, running_mean, running_var})});
  return y;
}

Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias,
                  double eps) {
  LEVIN_AUTOCAST(float32, layer_norm, x, normalized_shape, weight, bias, eps);
  LEVIN_TRACE_CALL(layer_norm(x, normalized_shape, weight, bias, eps), "layer_norm", {x, weight, bias},
                   {{"axes", normalized_shape.size()}, {"eps", eps}});
  if (needs_float32(kernels::layer_norm, x))
    return to(layer_norm(widened(x), normalized_shape, widened(weight), widened(bias), eps), x.dtype());
  check_floating("layer_norm", x);
  const int lead = x.dim() - normalized_shape.size();
  if (normalized_shape.empty() || lead < 0 || Shape(x.sizes().begin() + lead, x.sizes().end()) != normalized_shape)
    fail<ShapeError>("[layer_norm] x is {}, but its last sizes have to be normalized_shape, {}.", x.sizes(),
                     normalized_shape);
  check_parameter("layer_norm", "weight", weight, x, normalized_shape, x.dtype());
  check_parameter("layer_norm", "bias", bias, x, normalized_shape, x.dtype());
  const Shape rows(x.sizes().begin(), x.sizes().begin() + lead);
  Tensor y = empty(x.sizes(), like(x)), mean, rstd;
  if (would_record({x, weight, bias})) {
    const TensorOptions kept{.dtype = statistics_type(x), .device = x.device()};
    mean = empty(rows, kept), rstd = empty(rows, kept);
  }
  launch(kernels::layer_norm, x.device(),
         {y.tensor_view(), dense(x).tensor_view(), view_of(dense(weight)), view_of(dense(bias)), view_of(mean),
          view_of(rstd), rows.numel(), normalized_shape.numel(), eps});
  struct State {
    Shape normalized;
    double eps;
  };
  if (Context* c = record("layer_norm", y, {x, weight, bias}, [](Context& k, const Tensor& g) -> Grads {
        const Tensor x1 = k.saved(0), weight1 = k.saved(1);
        const State& s = k.get<State>();
        NormGradients r = layer_norm_backward(Wanted(k, g, x1, weight1), g, x1, weight1, k.saved(2), k.saved(3),
                                              s.normalized, s.eps);
        return {r.dx, k.needs(1) ? r.dweight : Tensor(), k.needs(2) ? r.dbias : Tensor()};
      }))
    c->save(x, weight, mean, rstd).set(State{normalized_shape, eps});
  return y;
}

}  // namespace levin
