#pragma once
// Metrics of object detection.

#include <levin/trainer/metrics/metric.h>

#include <map>
#include <vector>

namespace levin::metrics {

/// Options of MeanAveragePrecision.
struct MeanAveragePrecisionOptions {
  std::vector<double> iou_thresholds{};  ///< empty: 0.50, 0.55, ..., 0.95
  std::int64_t max_detections = 100;     ///< per image and class; those with the highest scores count
};

/// Mean over IoU thresholds and over the classes with targets of the average precision at 101 recalls, as COCO defines
/// it (pycocotools' AP; torchmetrics' "map"). The value is -1 without targets.
class MeanAveragePrecision : public Metric {
 public:
  explicit MeanAveragePrecision(const MeanAveragePrecisionOptions& options = {});

  /// Adds one image: preds (N, 6) of x1, y1, x2, y2, score, class and target (M, 5) of x1, y1, x2, y2, class, floating.
  using Metric::update;
  /// Adds one image: boxes (N, 4), scores (N), classes (N), target_boxes (M, 4), target_classes (M).
  void update(const Tensor& boxes, const Tensor& scores, const Tensor& classes, const Tensor& target_boxes,
              const Tensor& target_classes);
  /// Average precision of each class that has targets, over all thresholds.
  std::map<std::int64_t, double> per_class() const;
  /// The metric at one IoU threshold: 0.5 gives torchmetrics' "map_50".
  double at_threshold(double iou) const;

 private:
  void add(const Tensor& preds, const Tensor& target) override;
  Tensor result() const override;
  /// Average precision by class and threshold.
  std::map<std::int64_t, std::vector<double>> average_precisions(const std::vector<double>& thresholds) const;
  MeanAveragePrecisionOptions options_;
};

}  // namespace levin::metrics
