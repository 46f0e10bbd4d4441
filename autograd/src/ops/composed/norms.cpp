// Normalisations that are compositions of others.

#include "../../errors.h"
#include "../autocast.h"
#include "../values.h"
#include "gradients.h"

#include <levin/autograd/ops/conv.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/norm.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/autograd/trace.h>
#include <levin/kernels/norm.h>

#include <limits>

namespace levin {

using namespace ops;

namespace {

void check_per_channel(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  for (const Argument& a : {Argument{"weight", weight}, Argument{"bias", bias}}) {
    if (!a.tensor.defined()) continue;
    if (a.tensor.sizes() != Shape{x.size(1)})
      fail<ShapeError>("[{}] {} is {}, but {} channels need ({},).", op, a.name, a.tensor.sizes(), x.size(1),
                       x.size(1));
  }
}

/// x * weight + bias per channel (axis 1).
Tensor scaled_per_channel(const char* op, Tensor y, const Tensor& weight, const Tensor& bias) {
  check_per_channel(op, y, weight, bias);
  const auto spread = [&](const Tensor& t) { return along_axis(t, 1, y.dim()); };
  if (weight.defined() && bias.defined()) return addcmul(spread(bias), y, spread(weight));
  if (weight.defined()) return mul(y, spread(weight));
  return bias.defined() ? add(y, spread(bias)) : y;
}

/// Normalises each of `groups` equal parts of each sample.
Tensor normalized_groups(const Tensor& x, int64_t groups, double eps) {
  const int64_t size = x.numel() / std::max<int64_t>(1, x.size(0) * groups);
  if (x.numel() == 0) return x;
  return reshape(layer_norm(reshape(x, {x.size(0) * groups, size}), {size}, {}, {}, eps), x.sizes());
}

/// True if a kernel of x's device takes x and the parameters as they are.
template <class Kernel>
bool fits(const Kernel& kernel, const Tensor& x, const Tensor& weight, const Tensor& bias = {}) {
  const auto agrees = [&](const Tensor& t) {
    return !t.defined() || (t.dtype() == x.dtype() && t.device() == x.device());
  };
  return kernel.has(x.device().type) && (x.dtype() == kFloat32 || x.dtype() == kFloat64) && x.numel() > 0 &&
         agrees(weight) && agrees(bias);
}

struct GroupNorm {
  int64_t groups;
  double eps;
};

Tensor composed_group_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const GroupNorm& n) {
  return scaled_per_channel("group_norm", normalized_groups(x, n.groups, n.eps), weight, bias);
}

Grads fused_gradients(const Context& k, const Tensor& g, const Tensor& x, const Tensor& weight) {
  const int64_t batch = x.size(0), channels = x.size(1), groups = k.get<GroupNorm>().groups;
  const Tensor dx = k.needs(0) ? empty(x.sizes(), like(x)) : Tensor();
  const Tensor dweight = empty({batch, channels}, like(x)), dbias = empty_like(dweight);
  launch(kernels::group_norm_backward, x.device(),
         {view_of(dx), dweight.tensor_view(), dbias.tensor_view(), g.tensor_view(), x.tensor_view(), view_of(weight),
          k.saved(3).tensor_view(), k.saved(4).tensor_view(), batch, groups, channels / groups,
          x.numel() / (batch * channels)});
  return {dx, k.needs(1) ? sum(dweight, {0}) : Tensor(), k.needs(2) ? sum(dbias, {0}) : Tensor()};
}

/// With xh = (x - mean) rstd and the averages over a group, dx = rstd (g w - mean(g w) - xh mean(g w xh)). The sums of
/// g and g xh over each channel of each sample give these averages and the gradients of weight and bias, so dx is
/// scale g + slope x + shift with one scale, slope and shift per channel (Wu & He 2018).
Grads group_norm_gradients(Context& k, const Tensor& g) {
  if (grad_enabled())
    return composed_gradients(k, {&g, 1}, 3, [&](const std::vector<Tensor>& inputs) {
      return std::vector<Tensor>{composed_group_norm(inputs[0], inputs[1], inputs[2], k.get<GroupNorm>())};
    });
  const Tensor x = dense(k.saved(0)), weight = k.saved(1), upstream = dense(g);
  if (fits(kernels::group_norm_backward, x, weight)) return fused_gradients(k, upstream, x, dense(weight));
  const int64_t batch = x.size(0), channels = x.size(1), groups = k.get<GroupNorm>().groups, per = channels / groups;
  const int64_t spatial = x.numel() / (batch * channels);
  const Tensor mean = reshape(k.saved(3), {batch, groups, 1}), rstd = reshape(k.saved(4), {batch, groups, 1});
  const auto per_channel = [&](const Tensor& t) { return contiguous(expand(t, {batch, groups, per})); };
  const Tensor mean_of = per_channel(mean), rstd_of = per_channel(rstd);
  const Tensor sum_gxh = empty_like(mean_of), sum_g = empty_like(mean_of);
  launch(kernels::batch_norm_backward, x.device(),
         {TensorView(), sum_gxh.tensor_view(), sum_g.tensor_view(), upstream.tensor_view(), x.tensor_view(),
          TensorView(), mean_of.tensor_view(), rstd_of.tensor_view(), 1, batch * channels, spatial});
  Grads grads(3);
  if (k.needs(1)) grads[1] = to(reshape(sum(sum_gxh, {0}), {channels}), weight.dtype());
  if (k.needs(2)) grads[2] = to(reshape(sum(sum_g, {0}), {channels}), k.saved(2).dtype());
  if (!k.needs(0)) return grads;
  const Tensor w = weight.defined() ? to(reshape(weight, {groups, per}), mean.dtype()) : Tensor();
  const auto average = [&](const Tensor& t) {
    return div(sum(w.defined() ? mul(t, w) : t, {-1}, true), static_cast<double>(per * spatial));
  };
  const Tensor slope = neg(mul(square(rstd), average(sum_gxh)));
  const Tensor shift = neg(add(mul(rstd, average(sum_g)), mul(slope, mean)));
  const Tensor scale = w.defined() ? mul(rstd_of, w) : rstd_of;
  Shape sizes = Shape::filled(x.dim(), 1);
  sizes[0] = batch, sizes[1] = channels;
  const auto spread = [&](const Tensor& t) { return reshape(per_channel(t), sizes); };
  grads[0] = to(addcmul(addcmul(spread(shift), upstream, spread(scale)), x, spread(slope)), x.dtype());
  return grads;
}

/// Normalises and scales in one kernel or two, whose statistics backward needs.
Tensor fused_group_norm(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const GroupNorm& n) {
  const int64_t rows = x.size(0) * n.groups, size = x.numel() / rows, channels = x.size(1) / n.groups;
  const TensorOptions kept{.dtype = statistics_type(x), .device = x.device()};
  const bool records = would_record({x, weight, bias});
  const Tensor mean = records ? empty({rows}, kept) : Tensor(), rstd = records ? empty({rows}, kept) : Tensor();
  check_per_channel(op, x, weight, bias);
  Tensor y = empty(x.sizes(), like(x));
  if (fits(kernels::group_norm, x, weight, bias)) {
    launch(kernels::group_norm, x.device(),
           {y.tensor_view(), dense(x).tensor_view(), view_of(dense(weight)), view_of(dense(bias)), view_of(mean),
            view_of(rstd), x.size(0), n.groups, channels, size / channels, n.eps});
  } else {
    launch(kernels::layer_norm, x.device(),
           {y.tensor_view(), dense(x).tensor_view(), {}, {}, view_of(mean), view_of(rstd), rows, size, n.eps});
    y = unrecorded([&] { return to(scaled_per_channel(op, y, weight, bias), x.dtype()); });
  }
  if (Context* c = record("group_norm", y, {x, weight, bias}, group_norm_gradients))
    c->save(x, weight, bias, mean, rstd).set(n);
  return y;
}

Tensor composed_rms_norm(const Tensor& x, const Axes& axes, const Tensor& weight, double eps) {
  const Tensor wide = widened(x);
  const Tensor y = to(mul(wide, rsqrt(add(mean(square(wide), axes, true), eps))), x.dtype());
  return weight.defined() ? mul(y, weight) : y;
}

struct RmsNorm {
  Axes axes;
  int64_t columns;
  double eps;
};

Grads rms_norm_gradients(Context& k, const Tensor& g) {
  const auto& n = k.get<RmsNorm>();
  if (grad_enabled())
    return composed_gradients(k, {&g, 1}, 2, [&](const std::vector<Tensor>& inputs) {
      return std::vector<Tensor>{composed_rms_norm(inputs[0], n.axes, inputs[1], n.eps)};
    });
  const Tensor x = dense(k.saved(0)), weight = dense(k.saved(1)), rstd = k.saved(2);
  const Tensor dx = k.needs(0) ? empty(x.sizes(), like(x)) : Tensor();
  const Tensor dweight = k.needs(1) ? empty(weight.sizes(), like(x)) : Tensor();
  launch(kernels::rms_norm_backward, x.device(),
         {view_of(dx), view_of(dweight), dense(g).tensor_view(), x.tensor_view(), view_of(weight), rstd.tensor_view(),
          rstd.numel(), n.columns});
  return {dx, dweight};
}

Tensor fused_rms_norm(const Tensor& x, const Tensor& weight, const RmsNorm& n) {
  const int64_t rows = x.numel() / n.columns;
  const Tensor rstd = would_record({x, weight}) ? empty({rows}, like(x)) : Tensor();
  Tensor y = empty(x.sizes(), like(x));
  launch(kernels::rms_norm, x.device(),
         {y.tensor_view(), dense(x).tensor_view(), view_of(dense(weight)), view_of(rstd), rows, n.columns, n.eps});
  if (Context* c = record("rms_norm", y, {x, weight}, rms_norm_gradients)) c->save(x, weight, rstd).set(n);
  return y;
}

}  // namespace

Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  LEVIN_AUTOCAST(float32, group_norm, x, num_groups, weight, bias, eps);
  LEVIN_TRACE_CALL(group_norm(x, num_groups, weight, bias, eps), "group_norm", {x, weight, bias},
                   {{"groups", num_groups}, {"eps", eps}});
  check_floating("group_norm", x);
  if (x.dim() < 2) fail<ShapeError>("[group_norm] the input is {}, expected is (B, C, ...).", x.sizes());
  if (num_groups < 1 || x.size(1) % num_groups != 0)
    fail<ValueError>("[group_norm] {} channels do not divide into {} groups.", x.size(1), num_groups);
  if (needs_float32(kernels::layer_norm, x))
    return to(group_norm(widened(x), num_groups, widened(weight), widened(bias), eps), x.dtype());
  const GroupNorm n{num_groups, eps};
  const bool fused = x.numel() > 0 && (would_record({x, weight, bias}) || fits(kernels::group_norm, x, weight, bias));
  return fused ? fused_group_norm("group_norm", x, weight, bias, n) : composed_group_norm(x, weight, bias, n);
}

Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  LEVIN_TRACE_CALL(instance_norm(x, weight, bias, eps), "instance_norm", {x, weight, bias}, {{"eps", eps}});
  check_floating("instance_norm", x);
  if (x.dim() < 3)
    fail<ShapeError>("[instance_norm] the input is {}, expected is (B, C, ...) with one spatial axis or more.",
                     x.sizes());
  if (x.numel() == x.size(0) * x.size(1) && x.numel() > 0)
    fail<ValueError>("[instance_norm] the input {} has one value per channel, whose variance is 0.", x.sizes());
  if (fits(kernels::group_norm, x, weight, bias))
    return fused_group_norm("instance_norm", x, weight, bias, {x.size(1), eps});
  return scaled_per_channel("instance_norm", normalized_groups(x, x.size(1), eps), weight, bias);
}

Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, std::optional<double> eps) {
  check_floating("rms_norm", x);
  const int first = x.dim() - normalized_shape.size();
  Axes axes;
  for (int i = 0; i < normalized_shape.size(); ++i) {
    if (first < 0 || x.size(first + i) != normalized_shape[i])
      fail<ShapeError>("[rms_norm] the input is {}, which does not end in {}.", x.sizes(), normalized_shape);
    axes.push_back(first + i);
  }
  if (weight.defined() && weight.sizes() != normalized_shape)
    fail<ShapeError>("[rms_norm] weight is {}, expected is {}.", weight.sizes(), normalized_shape);
  const double spacing = statistics_type(x) == kFloat64 ? std::numeric_limits<double>::epsilon()
                                                        : static_cast<double>(std::numeric_limits<float>::epsilon());
  if (fits(kernels::rms_norm, x, weight) && !axes.empty() && !tracing())
    return fused_rms_norm(x, weight, {axes, normalized_shape.numel(), eps.value_or(spacing)});
  return composed_rms_norm(x, axes, weight, eps.value_or(spacing));
}

Tensor local_response_norm(const Tensor& x, int64_t size, double alpha, double beta, double k) {
  LEVIN_TRACE_CALL(local_response_norm(x, size, alpha, beta, k), "local_response_norm", {x},
                   {{"size", size}, {"alpha", alpha}, {"beta", beta}, {"k", k}});
  check_floating("local_response_norm", x);
  if (x.dim() < 3)
    fail<ShapeError>("[local_response_norm] the input is {}, expected is (B, C, ...) with one spatial axis or more.",
                     x.sizes());
  if (size < 1) fail<ValueError>("[local_response_norm] size is {}. Give 1 or more.", size);
  const Tensor squares = reshape(square(x), {x.size(0), x.size(1), -1});
  const Tensor padded = pad(squares, {0, 0, size / 2, (size - 1) / 2});
  const Tensor sums = reshape(sum(unfold(padded, 1, size, 1), -1), x.sizes());
  return div(x, pow(add(mul(sums, alpha / static_cast<double>(size)), k), beta));
}

Tensor normalize(const Tensor& x, double p, int64_t axis, double eps) {
  check_floating("normalize", x);
  return div(x, clamp(norm(x, p, axis, true), eps));
}

}  // namespace levin
