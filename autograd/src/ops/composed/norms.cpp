// Normalisations that are compositions of others.

#include "../autocast.h"
#include "../values.h"

#include <levin/autograd/engine.h>
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

#include <fmt/format.h>

#include <limits>

namespace levin {

using namespace ops;

namespace {

/// x * weight + bias per channel (axis 1).
Tensor scaled_per_channel(const char* op, Tensor y, const Tensor& weight, const Tensor& bias) {
  for (const Argument& a : {Argument{"weight", weight}, Argument{"bias", bias}}) {
    if (!a.tensor.defined()) continue;
    if (a.tensor.sizes() != Shape{y.size(1)})
      throw ShapeError(fmt::format("[{}] {} is {}, but {} channels need ({},).", op, a.name,
                                   to_string(a.tensor.sizes()), y.size(1), y.size(1)));
  }
  Shape sizes = Shape::filled(y.dim(), 1);
  sizes[1] = y.size(1);
  if (weight.defined() && bias.defined()) return addcmul(reshape(bias, sizes), y, reshape(weight, sizes));
  if (weight.defined()) return mul(y, reshape(weight, sizes));
  return bias.defined() ? add(y, reshape(bias, sizes)) : y;
}

/// Normalises each of `groups` equal parts of each sample.
Tensor normalized_groups(const Tensor& x, int64_t groups, double eps) {
  const int64_t size = x.numel() / std::max<int64_t>(1, x.size(0) * groups);
  if (x.numel() == 0) return x;
  return reshape(layer_norm(reshape(x, {x.size(0) * groups, size}), {size}, {}, {}, eps), x.sizes());
}

}  // namespace

namespace {

struct GroupNorm {
  int64_t groups;
  double eps;
};

Tensor composed_group_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const GroupNorm& n) {
  return scaled_per_channel("group_norm", normalized_groups(x, n.groups, n.eps), weight, bias);
}

/// Differentiates the composed form, whose graph gives further derivatives.
Grads composed_gradients(const Context& k, const Tensor& g) {
  std::vector<Tensor> inputs, wanted;
  for (int i = 0; i < 3; ++i) {
    const Tensor t = k.saved(i);
    inputs.push_back(t.defined() ? view(t, t.sizes()) : t);
    if (k.needs(i)) wanted.push_back(inputs.back());
  }
  const std::vector<Tensor> y{composed_group_norm(inputs[0], inputs[1], inputs[2], k.get<GroupNorm>())}, seeds{g};
  const std::vector<Tensor> found = grad(y, wanted, {.create_graph = true, .allow_unused = true}, seeds);
  Grads grads(3);
  for (int i = 0, next = 0; i < 3; ++i)
    if (k.needs(i)) grads[i] = found[static_cast<std::size_t>(next++)];
  return grads;
}

/// With xh = (x - mean) rstd and the averages over a group, dx = rstd (g w - mean(g w) - xh mean(g w xh)). The sums of
/// g and g xh over each channel of each sample give these averages and the gradients of weight and bias, so dx is
/// scale g + slope x + shift with one scale, slope and shift per channel (Wu & He 2018).
Grads group_norm_gradients(Context& k, const Tensor& g) {
  if (grad_enabled()) return composed_gradients(k, g);
  const Tensor x = dense(k.saved(0)), weight = k.saved(1), upstream = dense(g);
  const int64_t batch = x.size(0), channels = x.size(1), groups = k.get<GroupNorm>().groups, per = channels / groups;
  const int64_t spatial = x.numel() / (batch * channels);
  const Tensor mean = reshape(k.saved(3), {batch, groups, 1}), rstd = reshape(k.saved(4), {batch, groups, 1});
  const auto per_channel = [&](const Tensor& t) { return contiguous(expand(t, {batch, groups, per})); };
  const Tensor mean_of = per_channel(mean), rstd_of = per_channel(rstd);
  const Tensor sum_gxh = empty_like(mean_of), sum_g = empty_like(mean_of);
  Stream stream = current_stream(x.device());
  kernels::batch_norm_backward({{}, sum_gxh.tensor_view(), sum_g.tensor_view(), upstream.tensor_view(),
                                x.tensor_view(), {}, mean_of.tensor_view(), rstd_of.tensor_view(), 1,
                                batch * channels, spatial},
                               stream);
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

/// Normalises and scales by the fused kernel of layer norm, whose statistics backward needs.
Tensor fused_group_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const GroupNorm& n) {
  const int64_t rows = x.size(0) * n.groups;
  const TensorOptions kept{.dtype = statistics_type(x), .device = x.device()};
  const Tensor mean = empty({rows}, kept), rstd = empty({rows}, kept);
  Tensor y;
  {
    no_grad guard;
    const Tensor source = dense(x), normalized = empty(x.sizes(), like(x));
    Stream stream = current_stream(x.device());
    kernels::layer_norm({normalized.tensor_view(), source.tensor_view(), {}, {}, mean.tensor_view(),
                         rstd.tensor_view(), rows, x.numel() / rows, n.eps},
                        stream);
    y = to(scaled_per_channel("group_norm", normalized, weight, bias), x.dtype());
  }
  if (Context* c = record("group_norm", y, {x, weight, bias}, group_norm_gradients)) {
    c->save(x, weight, bias, mean, rstd);
    c->set(n);
  }
  return y;
}

}  // namespace

Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  LEVIN_AUTOCAST(float32, group_norm, x, num_groups, weight, bias, eps);
  LEVIN_TRACE_CALL(group_norm(x, num_groups, weight, bias, eps), "group_norm", {x, weight, bias},
                   {{"groups", num_groups}, {"eps", eps}});
  check_floating("group_norm", x);
  if (x.dim() < 2)
    throw ShapeError(fmt::format("[group_norm] the input is {}, expected is (B, C, ...).", to_string(x.sizes())));
  if (num_groups < 1 || x.size(1) % num_groups != 0)
    throw ValueError(fmt::format("[group_norm] {} channels do not divide into {} groups.", x.size(1), num_groups));
  if (needs_float32(kernels::layer_norm, x))
    return to(group_norm(widened(x), num_groups, widened(weight), widened(bias), eps), x.dtype());
  const GroupNorm n{num_groups, eps};
  const bool fused = x.numel() > 0 && would_record({x, weight, bias});
  return fused ? fused_group_norm(x, weight, bias, n) : composed_group_norm(x, weight, bias, n);
}

Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  LEVIN_TRACE_CALL(instance_norm(x, weight, bias, eps), "instance_norm", {x, weight, bias}, {{"eps", eps}});
  check_floating("instance_norm", x);
  if (x.dim() < 3)
    throw ShapeError(
        fmt::format("[instance_norm] the input is {}, expected is (B, C, ...) with one spatial axis or "
                    "more.",
                    to_string(x.sizes())));
  if (x.numel() == x.size(0) * x.size(1) && x.numel() > 0)
    throw ValueError(fmt::format("[instance_norm] the input {} has one value per channel, whose variance is 0.",
                                 to_string(x.sizes())));
  return scaled_per_channel("instance_norm", normalized_groups(x, x.size(1), eps), weight, bias);
}

Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, std::optional<double> eps) {
  check_floating("rms_norm", x);
  const int first = x.dim() - normalized_shape.size();
  Axes axes;
  for (int i = 0; i < normalized_shape.size(); ++i) {
    if (first < 0 || x.size(first + i) != normalized_shape[i])
      throw ShapeError(fmt::format("[rms_norm] the input is {}, which does not end in {}.", to_string(x.sizes()),
                                   to_string(normalized_shape)));
    axes.push_back(first + i);
  }
  if (weight.defined() && weight.sizes() != normalized_shape)
    throw ShapeError(fmt::format("[rms_norm] weight is {}, expected is {}.", to_string(weight.sizes()),
                                 to_string(normalized_shape)));
  const double spacing = statistics_type(x) == kFloat64 ? std::numeric_limits<double>::epsilon()
                                                        : static_cast<double>(std::numeric_limits<float>::epsilon());
  const Tensor wide = widened(x);
  const Tensor y = to(mul(wide, rsqrt(add(mean(square(wide), axes, true), eps.value_or(spacing)))), x.dtype());
  return weight.defined() ? mul(y, weight) : y;
}

Tensor local_response_norm(const Tensor& x, int64_t size, double alpha, double beta, double k) {
  LEVIN_TRACE_CALL(local_response_norm(x, size, alpha, beta, k), "local_response_norm", {x},
                   {{"size", size}, {"alpha", alpha}, {"beta", beta}, {"k", k}});
  check_floating("local_response_norm", x);
  if (x.dim() < 3)
    throw ShapeError(
        fmt::format("[local_response_norm] the input is {}, expected is (B, C, ...) with one spatial axis "
                    "or more.",
                    to_string(x.sizes())));
  if (size < 1) throw ValueError(fmt::format("[local_response_norm] size is {}. Give 1 or more.", size));
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
