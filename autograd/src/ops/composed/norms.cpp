// Normalisations that are compositions of others.

#include "../values.h"

#include <levin/autograd/ops/conv.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/norm.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>

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

Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  check_floating("group_norm", x);
  if (x.dim() < 2)
    throw ShapeError(fmt::format("[group_norm] the input is {}, expected is (B, C, ...).", to_string(x.sizes())));
  if (num_groups < 1 || x.size(1) % num_groups != 0)
    throw ValueError(fmt::format("[group_norm] {} channels do not divide into {} groups.", x.size(1), num_groups));
  return scaled_per_channel("group_norm", normalized_groups(x, num_groups, eps), weight, bias);
}

Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
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
