#include <levin/trainer/metrics/detection.h>

#include <levin/autograd/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace levin::metrics {
namespace {

constexpr int kRecalls = 101;

using Box = std::array<double, 4>;

struct Detection {
  double score;
  Box box;
};

/// The detections and targets of one class in one image.
struct Scene {
  std::vector<Detection> detections;
  std::vector<Box> targets;
};

double area_of(const Box& b) { return (b[2] - b[0]) * (b[3] - b[1]); }

double iou_of(const Box& a, const Box& b) {
  const double width = std::min(a[2], b[2]) - std::max(a[0], b[0]),
               height = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  if (width <= 0 || height <= 0) return 0;
  return width * height / (area_of(a) + area_of(b) - width * height);
}

/// Marks the detections, best first, that find a target of their own with at least this IoU.
std::vector<bool> match(const Scene& scene, double threshold) {
  std::vector<bool> found(scene.detections.size()), taken(scene.targets.size());
  for (std::size_t d = 0; d < found.size(); ++d) {
    double best = std::min(threshold, 1 - 1e-10);
    std::size_t which = scene.targets.size();
    for (std::size_t t = 0; t < scene.targets.size(); ++t) {
      const double iou = iou_of(scene.detections[d].box, scene.targets[t]);
      if (taken[t] || iou < best) continue;
      best = iou;
      which = t;
    }
    found[d] = which < scene.targets.size();
    if (found[d]) taken[which] = true;
  }
  return found;
}

/// Mean precision at the recalls 0, 0.01, ..., 1, where a precision is the largest at that recall or a higher one.
double average_precision(const std::vector<Scene>& scenes, double threshold, double targets) {
  std::vector<std::pair<double, bool>> ranked;
  for (const Scene& scene : scenes) {
    const std::vector<bool> found = match(scene, threshold);
    for (std::size_t d = 0; d < found.size(); ++d) ranked.emplace_back(scene.detections[d].score, found[d]);
  }
  std::ranges::stable_sort(ranked, std::greater<>(), &std::pair<double, bool>::first);
  std::vector<double> recall, precision;
  double right = 0;
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    right += ranked[i].second ? 1 : 0;
    recall.push_back(right / targets);
    precision.push_back(right / static_cast<double>(i + 1));
  }
  for (std::size_t i = precision.size(); i > 1; --i) precision[i - 2] = std::max(precision[i - 2], precision[i - 1]);
  double sum = 0;
  for (int r = 0; r < kRecalls; ++r) {
    const auto at = std::ranges::lower_bound(recall, r / 100.0) - recall.begin();
    if (at < std::ssize(recall)) sum += precision[static_cast<std::size_t>(at)];
  }
  return sum / kRecalls;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> doubles(const Tensor& t) { return t.defined() ? t.to_vector<double>() : std::vector<double>(); }

}  // namespace

MeanAveragePrecision::MeanAveragePrecision(const MeanAveragePrecisionOptions& options)
    : Metric("MeanAveragePrecision"), options_(options) {
  for (const double t : options.iou_thresholds)
    if (!(t > 0 && t <= 1))
      throw ValueError(fmt::format("[MeanAveragePrecision] an IoU threshold is {}; give numbers above 0 up to 1.", t));
  if (options.max_detections < 1)
    throw ValueError(
        fmt::format("[MeanAveragePrecision] max_detections is {}; give 1 or more.", options.max_detections));
  if (options_.iou_thresholds.empty())
    for (int i = 0; i < 10; ++i) options_.iou_thresholds.push_back(0.5 + 0.05 * i);
  add_state("preds", empty({0, 6}, {.dtype = kFloat64}), StateReduce::cat);
  add_state("target", empty({0, 5}, {.dtype = kFloat64}), StateReduce::cat);
  add_state("pred_counts", empty({0}, {.dtype = kInt64}), StateReduce::cat);    // rows of each image
  add_state("target_counts", empty({0}, {.dtype = kInt64}), StateReduce::cat);  // likewise
}

void MeanAveragePrecision::update(const Tensor& boxes, const Tensor& scores, const Tensor& classes,
                                  const Tensor& target_boxes, const Tensor& target_classes) {
  const auto column = [](const Tensor& t) { return t.to(kFloat64).unsqueeze(-1); };
  update(cat({boxes.to(kFloat64), column(scores), column(classes)}, 1),
         cat({target_boxes.to(kFloat64), column(target_classes)}, 1));
}

void MeanAveragePrecision::add(const Tensor& preds, const Tensor& target) {
  const bool fits = preds.dim() == 2 && preds.size(1) == 6 && target.dim() == 2 && target.size(1) == 5;
  if (!fits || !preds.is_floating() || !target.is_floating())
    throw ShapeError(fmt::format(
        "[MeanAveragePrecision] predictions are {} {} and targets {} {}. Give floating (N, 6) of x1, y1, x2, "
        "y2, score, class and (M, 5) of x1, y1, x2, y2, class.",
        name_of(preds.dtype()), to_string(preds.sizes()), name_of(target.dtype()), to_string(target.sizes())));
  gather("preds", preds.to(kFloat64));
  gather("target", target.to(kFloat64));
  gather("pred_counts", full({1}, preds.size(0), {.dtype = kInt64, .device = preds.device()}));
  gather("target_counts", full({1}, target.size(0), {.dtype = kInt64, .device = preds.device()}));
}

std::map<std::int64_t, std::vector<double>> MeanAveragePrecision::average_precisions(
    const std::vector<double>& thresholds) const {
  const auto preds = doubles(state("preds")), target = doubles(state("target"));
  const auto pred_counts = doubles(state("pred_counts")), target_counts = doubles(state("target_counts"));
  std::map<std::int64_t, std::vector<Scene>> classes;
  std::map<std::int64_t, double> targets;
  const auto scene_of = [&](double label, std::size_t image) -> Scene& {
    auto& scenes = classes[static_cast<std::int64_t>(label)];
    scenes.resize(std::max(scenes.size(), image + 1));
    return scenes[image];
  };
  const double* p = preds.data();
  const double* t = target.data();
  for (std::size_t image = 0; image < pred_counts.size(); ++image) {
    for (double i = 0; i < pred_counts[image]; ++i, p += 6)
      scene_of(p[5], image).detections.push_back({p[4], {p[0], p[1], p[2], p[3]}});
    for (double i = 0; i < target_counts[image]; ++i, t += 5) {
      scene_of(t[4], image).targets.push_back({t[0], t[1], t[2], t[3]});
      ++targets[static_cast<std::int64_t>(t[4])];
    }
  }
  std::map<std::int64_t, std::vector<double>> out;
  for (const auto& [label, count] : targets) {
    auto& scenes = classes[label];
    for (Scene& scene : scenes) {
      std::ranges::stable_sort(scene.detections, std::greater<>(), &Detection::score);
      const auto most = static_cast<std::size_t>(options_.max_detections);
      if (scene.detections.size() > most) scene.detections.resize(most);
    }
    for (const double threshold : thresholds) out[label].push_back(average_precision(scenes, threshold, count));
  }
  return out;
}

std::map<std::int64_t, double> MeanAveragePrecision::per_class() const {
  std::map<std::int64_t, double> out;
  for (const auto& [label, values] : average_precisions(options_.iou_thresholds)) out[label] = mean(values);
  return out;
}

double MeanAveragePrecision::at_threshold(double iou) const {
  std::vector<double> values;
  for (const auto& [label, value] : average_precisions({iou})) values.push_back(value[0]);
  return values.empty() ? -1 : mean(values);
}

Tensor MeanAveragePrecision::result() const {
  std::vector<double> values;
  for (const auto& [label, value] : per_class()) values.push_back(value);
  return tensor(values.empty() ? -1 : mean(values), {.dtype = kFloat64});
}

}  // namespace levin::metrics
