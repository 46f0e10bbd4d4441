#include <levin/trainer/metrics/ranking.h>

#include <levin/autograd/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/metrics/labels.h"

namespace levin::metrics {
namespace {

/// Applies softmax to each row in place; scores (n, classes).
void softmax_rows(std::vector<double>& scores, std::size_t classes) {
  for (auto row = scores.begin(); row != scores.end(); row += static_cast<std::ptrdiff_t>(classes)) {
    const auto end = row + static_cast<std::ptrdiff_t>(classes);
    const double top = *std::max_element(row, end);
    double sum = 0;
    for (auto x = row; x != end; ++x) sum += * x = std::exp(*x - top);
    for (auto x = row; x != end; ++x) *x /= sum;
  }
}

}  // namespace

Ranking::Ranking(const char* name, const RankingOptions& options) : Metric(name), options_(options) {
  check_rules({name, options.task, 0.5, options.num_classes, 1, options.ignore_index});
  if (options.task == Task::multiclass && options.average == Average::micro)
    throw ValueError(fmt::format("[{}] has no micro average. Choose macro, weighted or none.", name));
  add_state("preds", empty({0}, {.dtype = kFloat32}), StateReduce::cat);
  add_state("target", empty({0}, {.dtype = kInt64}), StateReduce::cat);
}

void Ranking::add(const Tensor& preds, const Tensor& target) {
  if (!is_floating(preds.dtype()))
    throw DTypeError(fmt::format("[{}] predictions are {}. Give floating scores.", name(), name_of(preds.dtype())));
  const bool binary = options_.task == Task::binary;
  const auto c = options_.num_classes;
  check_targets(name(), target, binary ? 2 : c, options_.ignore_index);
  Tensor scores = preds;
  if (binary) {
    require_same_sizes(preds, target);
  } else {
    bool fits = preds.dim() == target.dim() + 1 && target.dim() > 0 && preds.size(1) == c &&
                preds.numel() == target.numel() * c;
    if (!fits)
      throw ShapeError(
          fmt::format("[{}] scores are {} and targets {}; scores of {} classes have one axis more, axis 1.", name(),
                      to_string(preds.sizes()), to_string(target.sizes()), c));
    if (target.numel() == 0) return;
    if (preds.dim() > 2) scores = preds.reshape({preds.size(0), c, -1}).transpose(1, 2);
  }
  if (scores.dtype() != kFloat64) scores = scores.to(kFloat32);
  gather("preds", binary ? scores.reshape({-1}) : scores.reshape({-1, c}));
  gather("target", target.to(kInt64).reshape({-1}));
}

namespace {

template <class Curve>
Curve curve_of(const std::vector<double>& scores, const std::vector<bool>& positive) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  Curve out;
  std::int64_t tp = 0, fp = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    (positive[order[i]] ? tp : fp) += 1;
    if (i + 1 < order.size() && scores[order[i + 1]] == scores[order[i]]) continue;
    out.tp.push_back(tp);
    out.fp.push_back(fp);
  }
  return out;
}

}  // namespace

Tensor Ranking::result() const {
  const Tensor all_scores = state("preds"), all_targets = state("target");
  if (!all_scores.defined())
    throw ValueError(fmt::format("[{}] there are no samples to rank. Call update first.", name()));
  auto scores = all_scores.to_vector<double>();
  auto target = all_targets.to_vector<std::int64_t>();
  const auto nan = std::count_if(scores.begin(), scores.end(), [](double x) { return std::isnan(x); });
  if (nan > 0)
    throw ValueError(fmt::format("[{}] {} of {} scores are NaN and have no rank. Look for their cause in the model.",
                                 name(), nan, scores.size()));
  if (options_.ignore_index) {
    const std::size_t width = options_.task == Task::binary ? 1 : static_cast<std::size_t>(options_.num_classes);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < target.size(); ++i) {
      if (target[i] == *options_.ignore_index) continue;
      target[kept] = target[i];
      for (std::size_t k = 0; k < width; ++k) scores[kept * width + k] = scores[i * width + k];
      ++kept;
    }
    target.resize(kept);
    scores.resize(kept * width);
  }
  if (options_.task == Task::multiclass) return classes_result(std::move(scores), target);
  std::vector<bool> positive;
  for (const auto t : target) positive.push_back(t == 1);
  return tensor(area(curve_of<Curve>(scores, positive)), {.dtype = kFloat64});
}

Tensor Ranking::classes_result(std::vector<double> scores, const std::vector<std::int64_t>& target) const {
  const auto classes = static_cast<std::size_t>(options_.num_classes);
  if (std::any_of(scores.begin(), scores.end(), [](double x) { return x < 0 || x > 1; })) softmax_rows(scores, classes);
  std::vector<double> areas, of_class(target.size());
  std::vector<bool> positive(target.size());
  double sum = 0, weights = 0;
  for (std::size_t c = 0; c < classes; ++c) {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < target.size(); ++i) {
      of_class[i] = scores[i * classes + c];
      positive[i] = target[i] == static_cast<std::int64_t>(c);
      count += positive[i];
    }
    areas.push_back(area(curve_of<Curve>(of_class, positive)));
    const double weight = options_.average == Average::weighted ? static_cast<double>(count) : 1;
    if (std::isnan(areas.back())) continue;
    sum += weight * areas.back();
    weights += weight;
  }
  if (options_.average == Average::none) return from_data(areas, {options_.num_classes}, {.dtype = kFloat64});
  return tensor(sum / weights, {.dtype = kFloat64});
}

AUROC::AUROC(const RankingOptions& options) : Ranking("AUROC", options) {
  if (!options.max_fpr) return;
  if (options.task != Task::binary) throw ValueError("[AUROC] max_fpr is for task binary only. Leave it out.");
  if (*options.max_fpr <= 0 || *options.max_fpr > 1)
    throw ValueError(fmt::format("[AUROC] max_fpr is {}. Give a rate above 0 and up to 1.", *options.max_fpr));
}

double AUROC::area(const Curve& c) const {
  if (c.positives() == 0 || c.negatives() == 0) {
    warn(fmt::format("there are {} positive and {} negative samples: the area is undefined and given as 0.",
                     c.positives(), c.negatives()));
    return 0;
  }
  const double p = static_cast<double>(c.positives()), n = static_cast<double>(c.negatives());
  const double limit = options_.max_fpr.value_or(1.0);
  if (limit == 1.0) {  // in integers: twice the area in units of 1 / (p n)
    std::int64_t twice = 0, tp = 0, fp = 0;
    for (std::size_t i = 0; i < c.tp.size(); ++i) {
      twice += (c.fp[i] - fp) * (c.tp[i] + tp);
      tp = c.tp[i];
      fp = c.fp[i];
    }
    return static_cast<double>(twice) / 2 / p / n;
  }
  double area = 0, x = 0, y = 0;
  for (std::size_t i = 0; i < c.tp.size() && x < limit; ++i) {
    double to_x = static_cast<double>(c.fp[i]) / n, to_y = static_cast<double>(c.tp[i]) / p;
    if (to_x > limit) {
      to_y = y + (to_y - y) * (limit - x) / (to_x - x);
      to_x = limit;
    }
    area += (to_x - x) * (y + to_y) / 2;
    x = to_x;
    y = to_y;
  }
  const double chance = limit * limit / 2;
  return 0.5 * (1 + (area - chance) / (limit - chance));
}

double AveragePrecision::area(const Curve& c) const {
  if (c.positives() == 0) return options_.task == Task::binary ? 0 : std::nan("");
  double out = 0;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < c.tp.size(); ++i) {
    const auto tp = c.tp[i];
    out += static_cast<double>(tp - before) * static_cast<double>(tp) / static_cast<double>(tp + c.fp[i]);
    before = tp;
  }
  return out / static_cast<double>(c.positives());
}

}  // namespace levin::metrics
