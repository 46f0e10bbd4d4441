#include <levin/nn/loss.h>

#include <levin/autograd/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace levin::nn {

AdaptiveLogSoftmaxWithLoss::AdaptiveLogSoftmaxWithLoss(int64_t in, int64_t classes, const std::vector<int64_t>& cuts,
                                                       const Options& o)
    : in_features(in),
      n_classes(classes),
      cutoffs(cuts),
      options(o),
      head_(add<Linear>("head", in, (cuts.empty() ? 0 : cuts[0]) + static_cast<int64_t>(cuts.size()),
                        LinearOptions{.bias = o.head_bias})),
      tail_(add<ModuleList<Sequential>>("tail")) {
  if (cuts.empty() || cuts.front() < 1 || cuts.back() >= classes ||
      std::ranges::adjacent_find(cuts, std::greater_equal()) != cuts.end())
    throw ValueError(fmt::format("[AdaptiveLogSoftmaxWithLoss] cutoffs {} must increase between 1 and {}.",
                                 fmt::join(cuts, ", "), classes - 1));
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const int64_t end = i + 1 < cuts.size() ? cuts[i + 1] : classes;
    const auto width =
        static_cast<int64_t>(static_cast<double>(in) / std::pow(o.div_value, static_cast<double>(i + 1)));
    tail_.append(Linear(in, width, {.bias = false}), Linear(width, end - cuts[i], {.bias = false}));
  }
}

Tensor AdaptiveLogSoftmaxWithLoss::log_prob(const Tensor& x) {
  const Tensor head = log_softmax(head_(x), -1);  // (B, cutoffs[0] + clusters)
  std::vector<Tensor> parts = {narrow(head, -1, 0, cutoffs[0])};
  for (std::size_t i = 0; i < cutoffs.size(); ++i)
    parts.push_back(
        levin::add(log_softmax(tail_[i](x), -1), narrow(head, -1, cutoffs[0] + static_cast<int64_t>(i), 1)));
  return cat(parts, -1);
}

auto AdaptiveLogSoftmaxWithLoss::forward(const Tensor& x, const Tensor& target) -> Result {
  if ((x.dim() != 1 && x.dim() != 2) || x.size(-1) != in_features || target.dim() + 1 != x.dim() ||
      (x.dim() == 2 && target.size(0) != x.size(0)))
    throw ShapeError(fmt::format("[AdaptiveLogSoftmaxWithLoss] x is {} and target {}, expected are (B, {}) and (B,).",
                                 to_string(x.sizes()), to_string(target.sizes()), in_features));
  const Tensor loss = nll_loss(log_prob(x), target, {.reduction = Reduction::none});
  return {neg(loss), mean(loss)};
}

Tensor AdaptiveLogSoftmaxWithLoss::predict(const Tensor& x) { return argmax(log_prob(x), -1); }

}  // namespace levin::nn
