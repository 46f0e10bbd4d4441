// Metrics compared with torchmetrics, scikit-learn and plain loops; split and merged in any way; saved and loaded.
#include <levin/autograd/autocast.h>

#include <cmath>
#include <set>

#include "support/comparison.h"
#include "trainer/metrics/metric_cases.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;
using metrics::Task;

namespace {

void check_close(const Tensor& got, const Tensor& wanted, Within within) {
  REQUIRE(got.sizes() == wanted.sizes());
  REQUIRE(got.numel() > 0);
  const auto a = got.to_vector<double>(), b = wanted.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(b[i]))
      CHECK(std::isnan(a[i]));
    else
      CHECK(a[i] == approx(b[i], within));
  }
}

/// Relative to the value, or to 1 where something is taken off 1.
Within tolerance_of(const MetricCase& c, double bound) {
  return {.relative = bound, .absolute = c.name.starts_with("r2") ? bound : 0};
}

/// Feeds rows [begin, end) in pieces of random sizes, some of them empty.
void feed(metrics::Metric& m, const MetricCase& c, std::int64_t begin, std::int64_t end, Generator& rng) {
  while (begin < end) {
    const auto n = std::min<std::int64_t>(end - begin, static_cast<std::int64_t>(rng.below(8)));
    m.update(c.preds.narrow(0, begin, n), c.target.narrow(0, begin, n));
    begin += n;
  }
}

/// Sums are rounded; all else is the same to the bit.
bool is_exact(const MetricCase& c) {
  const std::string family = c.name.substr(0, c.name.find('/'));
  return !std::set<std::string>{"mse", "rmse", "mae", "r2", "mean", "perplexity"}.contains(family);
}

void check_same(const MetricCase& c, const Tensor& got, const Tensor& whole) {
  check_close(got, whole, tolerance_of(c, is_exact(c) ? 0 : 1e-14));
}

}  // namespace

TEST_CASE("metrics match torchmetrics' and scikit-learn's stored values") {
  const auto stored = read_stored_values("metrics.txt");
  std::size_t used = 0;
  for (const auto& c : metric_cases()) {
    CAPTURE(c.name);
    const auto metric = c.make();
    metric->update(c.preds, c.target);
    const Tensor got = metric->compute();
    REQUIRE(stored.contains("tm/" + c.name));
    check_close(got, stored.at("tm/" + c.name), tolerance_of(c, 4e-7));  // float32 there
    ++used;
    if (!stored.contains("sk/" + c.name)) continue;
    check_close(got, stored.at("sk/" + c.name), tolerance_of(c, 1e-14));
    ++used;
  }
  CHECK(used == stored.size());
}

TEST_CASE("any split into batches and any merge of shards give the value of all samples") {
  Generator rng(3);
  for (const auto& c : metric_cases()) {
    CAPTURE(c.name);
    const auto whole = c.make();
    whole->update(c.preds, c.target);
    const Tensor wanted = whole->compute();
    const std::int64_t n = c.preds.size(0);
    for (int round = 0; round < 5; ++round) {
      const auto one = c.make();
      feed(*one, c, 0, n, rng);
      check_same(c, one->compute(), wanted);
      const auto a = c.make(), b = c.make(), none = c.make();
      const auto cut = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(n)));
      feed(*a, c, cut, n, rng);
      feed(*b, c, 0, cut, rng);
      a->merge(*none);
      a->merge_state_dict(b->state_dict());
      check_same(c, a->compute(), wanted);
    }
  }
}

TEST_CASE("a metric saved midway continues bit for bit") {
  Generator rng(4);
  for (const auto& c : metric_cases()) {
    CAPTURE(c.name);
    const auto straight = c.make(), first = c.make(), second = c.make();
    const std::int64_t half = c.preds.size(0) / 2, rest = c.preds.size(0) - half;
    for (auto* m : {straight.get(), first.get()}) m->update(c.preds.narrow(0, 0, half), c.target.narrow(0, 0, half));
    second->update(c.preds, c.target);  // is discarded by loading the state
    second->load_state_dict(first->state_dict());
    CHECK(second->update_count() == 1);
    for (auto* m : {straight.get(), second.get()})
      m->update(c.preds.narrow(0, half, rest), c.target.narrow(0, half, rest));
    check_close(second->compute(), straight->compute(), {});
  }
}

TEST_CASE("calling a metric returns the batch's value and accumulates; reset clears it") {
  for (const auto& c : metric_cases()) {
    CAPTURE(c.name);
    const auto m = c.make(), batch = c.make(), whole = c.make();
    const std::int64_t half = c.preds.size(0) / 2, rest = c.preds.size(0) - half;
    (*m)(c.preds.narrow(0, 0, half), c.target.narrow(0, 0, half));
    const Tensor got = (*m)(c.preds.narrow(0, half, rest), c.target.narrow(0, half, rest));
    batch->update(c.preds.narrow(0, half, rest), c.target.narrow(0, half, rest));
    check_close(got, batch->compute(), {});
    CHECK(m->last().is_same(got));
    whole->update(c.preds, c.target);
    check_same(c, m->compute(), whole->compute());
    CHECK(m->update_count() == 2);
    m->reset();
    CHECK(!m->last().defined());
    m->update(c.preds, c.target);
    check_same(c, m->compute(), whole->compute());
  }
}

TEST_CASE("area and average precision equal a count over all pairs, with many equal scores") {
  Generator rng(5);
  for (int round = 0; round < 20; ++round) {
    const Tensor p = randint(0, 6, {40}, {.generator = &rng}).to(kFloat32) / 5;
    const Tensor t = randint(0, 2, {40}, {.generator = &rng});
    metrics::AUROC auroc;
    metrics::AveragePrecision ap;
    auroc.update(p, t);
    ap.update(p, t);
    const auto score = p.to_vector<double>();
    const auto label = t.to_vector<std::int64_t>();
    double won = 0, pairs = 0, precision = 0, positives = 0;
    for (std::size_t i = 0; i < score.size(); ++i) {
      if (label[i] == 0) continue;
      double above = 0, right = 0;  // among scores as high as this one
      for (std::size_t j = 0; j < score.size(); ++j) {
        if (score[j] >= score[i]) above += 1, right += static_cast<double>(label[j]);
        if (label[j] == 1) continue;
        pairs += 1;
        won += score[i] > score[j] ? 1 : score[i] == score[j] ? 0.5 : 0;
      }
      precision += right / above;
      positives += 1;
    }
    CHECK(auroc.value() == approx(won / pairs, {.relative = 1e-14}));
    CHECK(ap.value() == approx(precision / positives, {.relative = 1e-14}));
  }
}

TEST_CASE("logits and probabilities are distinguished over all batches, in any order") {
  const Tensor inside = tensor({0.9F, 0.2F}), outside = tensor({-2.0F, 3.0F}), t = tensor<std::int64_t>({1, 1});
  for (const bool inside_first : {true, false}) {
    metrics::Accuracy m({.task = Task::binary});
    m.update(inside_first ? inside : outside, t);
    m.update(inside_first ? outside : inside, t);
    CHECK(m.value() == 0.75);  // sigmoid(0.2) is above 0.5, sigmoid(-2) is not
  }
}

TEST_CASE("metrics accumulate in float64 also under autocast, and record no graph") {
  const autocast half(kHalf);
  metrics::MeanSquaredError m;
  const Tensor p = tensor({3000.0F, 0.001F}).requires_grad_();
  m.update(p, tensor({0.0F, 0.0F}));
  CHECK(m.value() == (9e6 + std::pow(static_cast<double>(0.001F), 2)) / 2);
  CHECK(!m.state_dict().at("sum_squared_error").requires_grad());
}

TEST_CASE("a mean skips NaN, or reports them") {
  metrics::MeanMetric m;
  CHECK(std::isnan(m.value()));
  m.update(tensor({1.0F, std::nanf(""), 3.0F}));
  m.update(8.0, 2.0);
  CHECK(m.value() == 5.0);
  metrics::MeanMetric strict(metrics::NanStrategy::error), open(metrics::NanStrategy::disable);
  strict.update(tensor({std::nanf("")}));
  open.update(tensor({std::nanf("")}));
  CHECK(contains(message_of<ValueError>([&] { strict.compute(); }), "[MeanMetric] 1 of the values were NaN."));
  CHECK(std::isnan(open.value()));
}

TEST_CASE("no samples, one sample, equal targets") {
  metrics::Accuracy accuracy({.num_classes = 3});
  CHECK(accuracy.value() == 0);
  metrics::AUROC auroc;
  CHECK(message_of<ValueError>([&] { auroc.compute(); }) == "[AUROC] there are no samples to rank. Call update first.");
  metrics::R2Score r2;
  r2.update(tensor({1.0F}), tensor({2.0F}));
  CHECK(contains(message_of<ValueError>([&] { r2.compute(); }), "there are 1 samples. Give two or more."));
  r2.update(tensor({3.0F, 4.0F}), tensor({2.0F, 2.0F}));
  CHECK(r2.value() == 0);
  r2.reset();
  r2.update(full({100}, 0.1), full({100}, 0.1));
  CHECK(r2.value() == 1);
}

TEST_CASE("wrong inputs, options and states are refused in one sentence, and change nothing") {
  metrics::Accuracy m({.num_classes = 3});
  const Tensor s = zeros({2, 3}), t = tensor<std::int64_t>({0, 1});
  m.update(s, t);
  CHECK(contains(message_of<IndexError>([&] {
                   m.update(s, tensor<std::int64_t>({0, 3}));
                 }),
                 "[Accuracy] a target is 3, but there are 3 classes."));
  CHECK(contains(message_of<ShapeError>([&] { m.update(zeros({2, 4}), t); }), "[Accuracy] scores are (2, 4)"));
  CHECK(contains(message_of<DTypeError>([&] { m(s, zeros({2})); }), "[Accuracy] targets are float32."));
  CHECK(m.value() == 0.5);
  CHECK(m.update_count() == 1);
  CHECK(contains(message_of<ValueError>([] { metrics::Accuracy{{}}; }), "num_classes is 0."));
  CHECK(contains(message_of<ValueError>([] { metrics::Recall{{.num_classes = 3, .top_k = 4}}; }), "top_k is 4 of 3"));
  metrics::Accuracy five({.num_classes = 5});
  CHECK(contains(message_of<StateError>([&] { m.merge(five); }), "[Accuracy] the saved state \"tp\" is int64 (5,)"));
  metrics::Recall recall({.num_classes = 3});
  CHECK(contains(message_of<StateError>([&] { m.merge(recall); }), "cannot merge a metric of another type"));
  CHECK(m.value() == 0.5);
  metrics::AUROC auroc;
  auroc.update(tensor({0.5F, std::nanf("")}), tensor<std::int64_t>({0, 1}));
  CHECK(contains(message_of<ValueError>([&] { auroc.compute(); }), "[AUROC] 1 of 2 scores are NaN"));
}

TEST_CASE("non-default options of metrics") {
  metrics::ConfusionMatrix low({.task = Task::binary, .threshold = 0.25});
  low.update(tensor({0.3F, 0.2F, 0.6F, 0.3F}), tensor<std::int64_t>({1, 0, 1, 0}));
  CHECK(low.compute().to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 1, 0, 2});
  metrics::ConfusionMatrix shares({.num_classes = 2, .normalize = metrics::Normalize::by_true});
  shares.update(tensor<std::int64_t>({0, 1, 1, 1}), tensor<std::int64_t>({0, 0, 0, 1}));
  CHECK(shares.compute().to_vector<double>() == std::vector<double>{1.0 / 3, 2.0 / 3, 0, 1});
  metrics::MeanAbsoluteError outputs({.num_outputs = 2});
  outputs.update(from_data<float>({1, 10, 3, 20}, {2, 2}), zeros({2, 2}));
  CHECK(outputs.compute().to_vector<double>() == std::vector<double>{2, 15});
  metrics::MeanMetric mean;
  mean.update(tensor({1.0F, 5.0F, 3.0F}), tensor({1.0F, std::nanf(""), 3.0F}));
  CHECK(mean.value() == 2.5);
  // Three classes; the samples of one target are ignored as if they did not exist.
  manual_seed(8);
  const Tensor scores = rand({12, 3}), target = tensor<std::int64_t>({0, 1, -1, 2, 1, -1, -1, 0, 2, 2, 0, 1});
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < 12; ++i)
    if (target.select(0, static_cast<int>(i)).item<std::int64_t>() >= 0) rows.push_back(i);
  const Tensor kept = from_data(rows, {std::ssize(rows)});
  metrics::AUROC with({.task = Task::multiclass, .num_classes = 3, .ignore_index = -1});
  metrics::AUROC without({.task = Task::multiclass, .num_classes = 3});
  with.update(scores, target);
  without.update(index_select(scores, 0, kept), index_select(target, 0, kept));
  CHECK(with.value() == without.value());
}

TEST_CASE("int32 classes count as int64 ones") {
  const Tensor scores = tensor({0.1, 0.7, 0.2, 0.8, 0.1, 0.1}).reshape({2, 3}), classes = tensor<int64_t>({1, 2});
  for (const Tensor& preds : {scores, argmax(scores, 1), argmax(scores, 1).to(kInt32)}) {
    metrics::Accuracy accuracy({.num_classes = 3});
    accuracy.update(preds, classes.to(kInt32));
    CHECK(accuracy.compute().item<double>() == 0.5);
  }
}

TEST_CASE("16-bit scores are summed in float32") {
  manual_seed(9);
  const Tensor scores = (randn({2, 5, 50}) * 3).to(kHalf), words = randint(0, 50, {2, 5});
  metrics::Perplexity narrow, wide;
  narrow.update(scores, words);
  wide.update(scores.to(kFloat32), words);
  CHECK(narrow.value() == wide.value());
}

TEST_CASE("a merged metric counts the updates of both") {
  metrics::Accuracy a({.task = Task::binary}), b({.task = Task::binary});
  const Tensor p = tensor({0.9F}), t = tensor<std::int64_t>({1});
  for (int i = 0; i < 3; ++i) a.update(p, t);
  for (int i = 0; i < 2; ++i) b.update(p, t);
  a.merge(b);
  CHECK(a.update_count() == 5);
  b.merge_state_dict(a.state_dict());
  CHECK(b.update_count() == 7);
}
