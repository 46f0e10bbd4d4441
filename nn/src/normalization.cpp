#include <levin/nn/normalization.h>

#include "layer_checks.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/norm.h>
#include <levin/autograd/ops/view.h>

namespace levin::nn {

BatchNorm::BatchNorm(int64_t features, const Options& o)
    : num_features(features),
      options(o),
      weight(register_parameter("weight", o.affine ? ones({features}) : Tensor())),
      bias(register_parameter("bias", o.affine ? zeros({features}) : Tensor())),
      running_mean(register_buffer("running_mean", o.track_running_stats ? zeros({features}) : Tensor())),
      running_var(register_buffer("running_var", o.track_running_stats ? ones({features}) : Tensor())),
      num_batches_tracked(register_buffer("num_batches_tracked",
                                          o.track_running_stats ? zeros({}, {.dtype = DType::i64}) : Tensor())) {}

void BatchNorm::reset_running_stats() {
  if (!options.track_running_stats) return;
  running_mean.zero_();
  running_var.fill_(1);
  num_batches_tracked.zero_();
}

Tensor BatchNorm::forward(const Tensor& x) {
  const bool batch_statistics = is_training() || !options.track_running_stats;
  double momentum = options.momentum.value_or(0.0);
  if (is_training() && options.track_running_stats) {
    num_batches_tracked.add_(1);
    if (!options.momentum) momentum = 1.0 / num_batches_tracked.item<double>();
  }
  if (is_training() && normalizer_) return normalizer_(*this, x, momentum);
  return batch_norm(x, running_mean, running_var, weight, bias,
                    {.training = batch_statistics, .momentum = momentum, .eps = options.eps});
}

std::string BatchNorm::extra_repr() const {
  return fmt::format("{}, eps={}, momentum={}, affine={}, track_running_stats={}", num_features, options.eps,
                     options.momentum ? fmt::format("{}", *options.momentum) : "None", yes_no(options.affine),
                     yes_no(options.track_running_stats));
}
void BatchNorm::set_normalizer(Normalizer f) { normalizer_ = std::move(f); }

namespace {

[[noreturn]] void refuse_sizes(const char* layer, const Tensor& x, int64_t features, const char* sizes) {
  throw ShapeError(
      fmt::format("[{}] the input is {}, expected is (B, {}{}).", layer, to_string(x.sizes()), features, sizes));
}

}  // namespace

Tensor BatchNorm1d::forward(const Tensor& x) {
  if (x.dim() != 2 && x.dim() != 3) refuse_sizes("BatchNorm1d", x, num_features, ") or (B, C, L");
  return BatchNorm::forward(x);
}
Tensor BatchNorm2d::forward(const Tensor& x) {
  if (x.dim() != 4) refuse_sizes("BatchNorm2d", x, num_features, ", H, W");
  return BatchNorm::forward(x);
}
Tensor BatchNorm3d::forward(const Tensor& x) {
  if (x.dim() != 5) refuse_sizes("BatchNorm3d", x, num_features, ", D, H, W");
  return BatchNorm::forward(x);
}

LayerNorm::LayerNorm(const Shape& shape, const Options& o)
    : normalized_shape(shape),
      options(o),
      weight(register_parameter("weight", o.elementwise_affine ? ones(shape) : Tensor())),
      bias(register_parameter("bias", o.elementwise_affine && o.bias ? zeros(shape) : Tensor())) {}
LayerNorm::LayerNorm(int64_t features, const Options& o) : LayerNorm(Shape{features}, o) {}
Tensor LayerNorm::forward(const Tensor& x) { return layer_norm(x, normalized_shape, weight, bias, options.eps); }
std::string LayerNorm::extra_repr() const {
  return fmt::format("{}, eps={}, elementwise_affine={}", to_string(normalized_shape), options.eps,
                     yes_no(options.elementwise_affine));
}

RMSNorm::RMSNorm(const Shape& shape, const Options& o)
    : normalized_shape(shape),
      options(o),
      weight(register_parameter("weight", o.elementwise_affine ? ones(shape) : Tensor())) {}
RMSNorm::RMSNorm(int64_t features, const Options& o) : RMSNorm(Shape{features}, o) {}
Tensor RMSNorm::forward(const Tensor& x) { return rms_norm(x, normalized_shape, weight, options.eps); }
std::string RMSNorm::extra_repr() const {
  return fmt::format("{}, eps={}, elementwise_affine={}", to_string(normalized_shape),
                     options.eps ? fmt::format("{}", *options.eps) : "None", yes_no(options.elementwise_affine));
}

GroupNorm::GroupNorm(int64_t groups, int64_t channels, const Options& o)
    : num_groups(groups),
      num_channels(channels),
      options(o),
      weight(register_parameter("weight", o.affine ? ones({channels}) : Tensor())),
      bias(register_parameter("bias", o.affine ? zeros({channels}) : Tensor())) {
  require_positive("GroupNorm", "num_groups", groups);
  if (channels % groups != 0)
    throw ValueError(fmt::format("[GroupNorm] {} channels do not divide into {} groups.", channels, groups));
}
Tensor GroupNorm::forward(const Tensor& x) { return group_norm(x, num_groups, weight, bias, options.eps); }
std::string GroupNorm::extra_repr() const {
  return fmt::format("{}, {}, eps={}, affine={}", num_groups, num_channels, options.eps, yes_no(options.affine));
}

InstanceNorm::InstanceNorm(int64_t features, const Options& o, int spatial)
    : num_features(features),
      options(o),
      weight(register_parameter("weight", o.affine ? ones({features}) : Tensor())),
      bias(register_parameter("bias", o.affine ? zeros({features}) : Tensor())),
      spatial_(spatial) {}
InstanceNorm1d::InstanceNorm1d(int64_t features, const Options& o) : Layer(features, o, 1) {}
InstanceNorm2d::InstanceNorm2d(int64_t features, const Options& o) : Layer(features, o, 2) {}
InstanceNorm3d::InstanceNorm3d(int64_t features, const Options& o) : Layer(features, o, 3) {}
Tensor InstanceNorm::forward(const Tensor& x) {
  const int axes = spatial_ + 2;
  if (spatial_ > 0 && x.dim() != axes && x.dim() != axes - 1)
    throw ShapeError(fmt::format("[{}] the input is {}, expected are {} axes, or {} without a batch.", type_name(),
                                 to_string(x.sizes()), axes, axes - 1));
  if (spatial_ > 0 && x.dim() == axes - 1) return squeeze(instance_norm(unsqueeze(x, 0), weight, bias, options.eps), 0);
  return instance_norm(x, weight, bias, options.eps);
}
std::string InstanceNorm::extra_repr() const {
  return fmt::format("{}, eps={}, affine={}", num_features, options.eps, yes_no(options.affine));
}

LocalResponseNorm::LocalResponseNorm(int64_t n, const Options& o) : size(n), options(o) {}
Tensor LocalResponseNorm::forward(const Tensor& x) {
  return local_response_norm(x, size, options.alpha, options.beta, options.k);
}
std::string LocalResponseNorm::extra_repr() const {
  return fmt::format("{}, alpha={}, beta={}, k={}", size, options.alpha, options.beta, options.k);
}

}  // namespace levin::nn
