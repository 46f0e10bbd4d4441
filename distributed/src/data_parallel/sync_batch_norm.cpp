#include <fmt/format.h>
#include <levin/autograd/function.h>
#include <levin/autograd/ops.h>
#include <levin/distributed/sync_batch_norm.h>

namespace levin::distributed {

namespace {

// Sum over the ranks. Each rank's input contributes to the result of every rank, so its gradient is the sum of theirs.
struct SumOverRanks : Function<SumOverRanks> {
  static Tensor forward(Context& c, const Tensor& x, const std::shared_ptr<ProcessGroup>& group) {
    c.set(group);
    const Tensor sum = x.contiguous().clone();
    group->all_reduce(sum).wait();
    return sum;
  }
  static Tensor backward(Context& c, const Tensor& g) { return apply(g, c.get<std::shared_ptr<ProcessGroup>>()); }
};

void check_input(const Tensor& x, int64_t channels) {
  if (x.dim() >= 2 && x.is_floating() && x.size(1) == channels) return;
  throw ShapeError(fmt::format("[sync_batch_norm] the input is {} of {}, expected is (B, {}, ...) of a floating type.",
                               levin::to_string(x.sizes()), name_of(x.dtype()), channels));
}

void move_towards(const Tensor& running, const Tensor& now, double momentum) {
  if (running.defined()) running.copy_(lerp(running, now.to(running.dtype()), momentum));
}

}  // namespace

Tensor sync_batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                       const Tensor& bias, const BatchNormOptions& options,
                       const std::shared_ptr<ProcessGroup>& group) {
  check_input(x, weight.defined() ? weight.numel() : x.dim() >= 2 ? x.size(1) : 0);
  const int64_t channels = x.size(1);
  const DType dtype = x.dtype() == kFloat64 ? kFloat64 : kFloat32;
  const Tensor values = x.to(dtype);
  Shape axes = {0}, place = {1, channels};  // the reduced axes, and the shape of a per-channel tensor
  for (int d = 2; d < x.dim(); ++d) {
    axes.push_back(d);
    place.push_back(1);
  }
  const auto per_channel = [&](const Tensor& t) { return t.to(dtype).view(place); };
  const int64_t own_count = channels == 0 ? 0 : x.numel() / channels;
  const Tensor count = full({1}, static_cast<double>(own_count), {.dtype = kFloat64, .device = x.device()});

  const Tensor sums = SumOverRanks::apply(cat({sum(values, axes).to(kFloat64), count}), group);  // (C + 1)
  const Tensor n = sums.narrow(0, channels, 1).detach().clamp(1.0);
  const Tensor mean = div(sums.narrow(0, 0, channels), n);  // (C), float64
  const Tensor centred = sub(values, per_channel(mean));
  const Tensor squares = SumOverRanks::apply(sum(square(centred), axes).to(kFloat64), group);  // (C)
  const Tensor var = div(squares, n);
  {
    const no_grad guard;
    move_towards(running_mean, mean, options.momentum);
    move_towards(running_var, div(squares, sub(n, 1.0).clamp(1.0)), options.momentum);
  }
  Tensor y = mul(centred, per_channel(rsqrt(add(var, options.eps))));
  if (weight.defined()) y = mul(y, per_channel(weight));
  if (bias.defined()) y = add(y, per_channel(bias));
  return y.to(x.dtype());
}

namespace {

nn::BatchNorm::Normalizer over_ranks(std::shared_ptr<ProcessGroup> group) {
  return [group = std::move(group)](const nn::BatchNorm& norm, const Tensor& x, double momentum) {
    return sync_batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias,
                           {.momentum = momentum, .eps = norm.options.eps}, group);
  };
}

}  // namespace

SyncBatchNorm::SyncBatchNorm(int64_t features, std::shared_ptr<ProcessGroup> group, const Options& o)
    : Layer(features, o), group_(std::move(group)) {
  set_normalizer(over_ranks(group_));
}

Tensor SyncBatchNorm::forward(const Tensor& x) {
  check_input(x, num_features);
  return nn::BatchNorm::forward(x);
}

std::string SyncBatchNorm::extra_repr() const {
  return fmt::format("{}, eps={}, ranks={}", num_features, options.eps, group_->size());
}

int64_t convert_sync_batchnorm(nn::Module& module, std::shared_ptr<ProcessGroup> group) {
  int64_t converted = 0;
  for (const auto& [name, m] : module.named_modules()) {
    nn::BatchNorm* const norm = m->as_batch_norm();
    if (norm == nullptr || dynamic_cast<SyncBatchNorm*>(norm)) continue;
    norm->set_normalizer(over_ranks(group));
    ++converted;
  }
  return converted;
}

}  // namespace levin::distributed
