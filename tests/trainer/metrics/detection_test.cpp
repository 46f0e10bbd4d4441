#include <levin/trainer/metrics.h>

#include "support/comparison.h"
#include "trainer/toy.h"

#include <vector>

using namespace levin;
using namespace levin::test;

namespace {

struct Scene {
  std::vector<double> preds, target;  // rows of 6 and of 5 numbers
  Tensor pred_rows() const { return from_data(preds, {std::ssize(preds) / 6, 6}, {.dtype = kFloat64}); }
  Tensor target_rows() const { return from_data(target, {std::ssize(target) / 5, 5}, {.dtype = kFloat64}); }
};

/// Six images with boxes from a linear congruential generator; the same as were given to torchmetrics.
std::vector<Scene> scenes() {
  std::int64_t state = 7;
  const auto next = [&] {
    state = (state * 1103515245 + 12345) % 2147483648;
    return (state >> 8) % 1000;
  };
  std::vector<Scene> out;
  for (int i = 0; i < 6; ++i) {
    Scene s;
    const auto count = next() % 4;
    for (std::int64_t t = 0; t < count; ++t) {
      const auto x = next() % 80, y = next() % 80, w = 10 + next() % 40, h = 10 + next() % 40, label = next() % 3;
      for (const auto v : {x, y, x + w, y + h, label}) s.target.push_back(static_cast<double>(v));
    }
    for (std::int64_t t = 0; t < count; ++t) {
      const double* box = s.target.data() + 5 * t;
      for (int k = 0; k < 2; ++k) {
        for (int j = 0; j < 4; ++j) s.preds.push_back(box[j] + static_cast<double>(next() % 7 - 3));
        s.preds.push_back(static_cast<double>(static_cast<float>(static_cast<double>(next() % 20) / 20)));
        const auto label = static_cast<std::int64_t>(box[4]);
        s.preds.push_back(static_cast<double>(next() % 5 != 0 ? label : (label + 1) % 3));
      }
    }
    const auto x = next() % 80, y = next() % 80;
    for (const auto v : {x, y, x + 20, y + 20}) s.preds.push_back(static_cast<double>(v));
    s.preds.push_back(static_cast<double>(static_cast<float>(static_cast<double>(next() % 20) / 20)));
    s.preds.push_back(static_cast<double>(next() % 3));
    out.push_back(std::move(s));
  }
  return out;
}

}  // namespace

// Values of torchmetrics 1.9 with pycocotools 2.0.11, in single precision.
TEST_CASE("mean average precision equals COCO's") {
  metrics::MeanAveragePrecision m;
  for (const Scene& s : scenes()) m.update(s.pred_rows(), s.target_rows());
  CHECK(m.value() == approx(0.3390366137, {.relative = 1e-7}));
  CHECK(m.at_threshold(0.5) == approx(0.5996699929, {.relative = 1e-7}));
  CHECK(m.at_threshold(0.75) == approx(0.1891089082, {.relative = 1e-7}));
  const auto classes = m.per_class();
  REQUIRE(classes.size() == 3);
  CHECK(classes.at(0) == approx(0.3716, {.relative = 0, .absolute = 1e-4}));
  CHECK(classes.at(1) == approx(0.5000, {.relative = 0, .absolute = 1e-4}));
  CHECK(classes.at(2) == approx(0.1455, {.relative = 0, .absolute = 1e-4}));
}

TEST_CASE("mean average precision of parts is that of the whole, and survives a checkpoint") {
  metrics::MeanAveragePrecision whole, first, second, loaded;
  const auto all = scenes();
  for (std::size_t i = 0; i < all.size(); ++i) {
    whole.update(all[i].pred_rows(), all[i].target_rows());
    (i < 2 ? first : second).update(all[i].pred_rows(), all[i].target_rows());
  }
  loaded.load_state_dict(first.state_dict());
  loaded.merge(second);
  CHECK(loaded.value() == whole.value());
}

TEST_CASE("mean average precision of simple cases") {
  const Tensor box = tensor({0.0F, 0.0F, 10.0F, 10.0F}).reshape({1, 4}), one = ones({1}), label = zeros({1}, kInt64);
  metrics::MeanAveragePrecision exact;
  exact.update(box, one, label, box, label);
  CHECK(exact.value() == 1);
  metrics::MeanAveragePrecision twice;  // the second detection of one target is wrong, but comes last
  twice.update(cat({box, box}), tensor({0.9F, 0.8F}), zeros({2}, kInt64), box, label);
  CHECK(twice.value() == 1);
  metrics::MeanAveragePrecision half({.iou_thresholds = {0.5}});
  half.update(box + tensor({5.0F, 0.0F, 5.0F, 0.0F}), one, label, box, label);  // IoU 1/3
  CHECK(half.value() == 0);
  metrics::MeanAveragePrecision none;
  none.update(box, one, label, empty({0, 4}), zeros({0}, kInt64));
  CHECK(none.value() == -1);
  metrics::MeanAveragePrecision few({.max_detections = 1});
  few.update(cat({box + 20, box}), tensor({0.9F, 0.8F}), zeros({2}, kInt64), box, label);
  CHECK(few.value() == 0);
}

TEST_CASE("wrong detections are refused") {
  metrics::MeanAveragePrecision m;
  CHECK(contains(message_of<ShapeError>([&] {
                   m.update(ones({2, 5}), ones({1, 5}));
                 }),
                 "predictions are float32 (2, 5) and targets float32 (1, 5). Give floating (N, 6)"));
  CHECK(contains(message_of<ValueError>([] { metrics::MeanAveragePrecision({.iou_thresholds = {1.5}}); }),
                 "an IoU threshold is 1.5; give numbers above 0 up to 1."));
  CHECK(contains(message_of<ValueError>([] { metrics::MeanAveragePrecision({.max_detections = 0}); }),
                 "max_detections is 0; give 1 or more."));
}
