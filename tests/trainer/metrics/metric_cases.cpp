#include "trainer/metrics/metric_cases.h"

namespace levin::test {
namespace {

using namespace levin::metrics;

constexpr std::int64_t kN = 61, kC = 5;

/// Returns values in [0, 1] with ties: multiples of 1/16.
Tensor share(std::int64_t salt) { return floor((formula(kN, salt) + 1) * 8) / 16; }

Tensor classes(std::int64_t salt, std::int64_t count = kC, std::int64_t n = kN) {
  return floor((formula(n, salt) + 1) / 2 * count).to(kInt64);
}

struct Cases {
  std::vector<MetricCase> list;
  template <class M, class... O>
  void add(const std::string& name, const Tensor& preds, const Tensor& target, const O&... options) {
    list.push_back({name, [options...] { return std::make_unique<M>(options...); }, preds, target});
  }
};

void add_binary(Cases& cases) {
  const Tensor p = share(1), t = classes(2, 2), hard = gt(p, 0.5).to(kInt64);
  const Tensor hole = remainder(arange(kN), 7).eq(0);
  struct Form {
    std::string name;
    Tensor preds, target;
    std::optional<std::int64_t> ignore;
  };
  const Form forms[] = {{"probabilities", p, t, {}},
                        {"logits", formula(kN, 3) * 3, t, {}},
                        {"classes", hard, t, {}},
                        {"ignore", p, where(hole, -1, t), -1}};
  for (const auto& f : forms) {
    const StatScoresOptions o{.task = Task::binary, .ignore_index = f.ignore};
    cases.add<Accuracy>("accuracy/" + f.name, f.preds, f.target, o);
    cases.add<metrics::Precision>("precision/" + f.name, f.preds, f.target, o);
    cases.add<Recall>("recall/" + f.name, f.preds, f.target, o);
    cases.add<F1Score>("f1/" + f.name, f.preds, f.target, o);
    cases.add<JaccardIndex>("jaccard/" + f.name, f.preds, f.target,
                            JaccardIndexOptions{.task = Task::binary, .ignore_index = f.ignore});
    cases.add<ConfusionMatrix>("confusion/" + f.name, f.preds, f.target,
                               ConfusionMatrixOptions{.task = Task::binary, .ignore_index = f.ignore});
    if (f.name == "classes") continue;
    cases.add<AUROC>("auroc/" + f.name, f.preds, f.target, RankingOptions{.ignore_index = f.ignore});
    cases.add<AveragePrecision>("ap/" + f.name, f.preds, f.target, RankingOptions{.ignore_index = f.ignore});
  }
  cases.add<AUROC>("auroc/max_fpr", p, t, RankingOptions{.max_fpr = 0.3});
  const std::pair<std::string, Tensor> single[] = {{"no_positives", zeros_like(t)}, {"no_negatives", ones_like(t)}};
  for (const auto& [name, target] : single) {
    cases.add<AUROC>("auroc/" + name, p, target);
    cases.add<AveragePrecision>("ap/" + name, p, target);
  }
  cases.add<Accuracy>("accuracy/threshold", p, t, StatScoresOptions{.task = Task::binary, .threshold = 0.25});
}

const std::pair<std::string, Average> kAverages[] = {
    {"micro", Average::micro}, {"macro", Average::macro}, {"weighted", Average::weighted}, {"none", Average::none}};

void add_multiclass(Cases& cases) {
  const Tensor s = formula(kN * kC, 4).reshape({kN, kC}) * 3;
  const std::pair<std::string, Normalize> norms[] = {
      {"none", Normalize::none}, {"true", Normalize::by_true}, {"pred", Normalize::by_pred}, {"all", Normalize::all}};
  for (const auto& [data, t] : {std::pair<std::string, Tensor>("all", classes(5)),
                                std::pair<std::string, Tensor>("absent", classes(5).clamp({}, 3))}) {
    for (const auto& [average, value] : kAverages) {
      for (const int k : {1, 2}) {
        const StatScoresOptions o{.num_classes = kC, .average = value, .top_k = k};
        const std::string tail = "/" + data + "/" + average + "/" + std::to_string(k);
        cases.add<Accuracy>("accuracy" + tail, s, t, o);
        cases.add<metrics::Precision>("precision" + tail, s, t, o);
        cases.add<Recall>("recall" + tail, s, t, o);
        cases.add<F1Score>("f1" + tail, s, t, o);
      }
      const std::string jaccard = "jaccard/" + data + "/" + average;
      cases.add<JaccardIndex>(jaccard, s, t, JaccardIndexOptions{.num_classes = kC, .average = value});
      if (value != Average::none)
        cases.add<JaccardIndex>(jaccard + "/ignore", s, t,
                                JaccardIndexOptions{.num_classes = kC, .average = value, .ignore_index = 2});
      if (value == Average::micro) continue;
      const RankingOptions o{.task = Task::multiclass, .num_classes = kC, .average = value};
      cases.add<AUROC>("auroc/" + data + "/" + average, s, t, o);
      cases.add<AveragePrecision>("ap/" + data + "/" + average, s, t, o);
    }
    for (const auto& [name, value] : norms)
      cases.add<ConfusionMatrix>("confusion/" + data + "/" + name, s, t,
                                 ConfusionMatrixOptions{.num_classes = kC, .normalize = value});
  }
  Tensor few = s.clone();
  few.select(1, 3).fill_(-9);
  for (const auto& [average, value] : kAverages) {
    if (value == Average::micro) continue;
    const StatScoresOptions o{.num_classes = kC, .average = value, .zero_division = 1};
    const Tensor t = classes(5).clamp({}, 2);
    cases.add<metrics::Precision>("precision/zero_division/" + average, few, t, o);
    cases.add<Recall>("recall/zero_division/" + average, few, t, o);
    cases.add<F1Score>("f1/zero_division/" + average, few, t, o);
  }
  const Tensor deep = formula(8 * kC * 7, 6).reshape({8, kC, 7}), deep_target = classes(7, kC, 56).reshape({8, 7});
  cases.add<Accuracy>("accuracy/deep", deep, deep_target, StatScoresOptions{.num_classes = kC});
  cases.add<AUROC>("auroc/deep", deep, deep_target, RankingOptions{.task = Task::multiclass, .num_classes = kC});
  cases.add<Accuracy>("accuracy/ignore_class", s, classes(5),
                      StatScoresOptions{.num_classes = kC, .average = Average::macro, .ignore_index = 2});
  cases.add<ConfusionMatrix>("confusion/ignore_class", s, classes(5),
                             ConfusionMatrixOptions{.num_classes = kC, .ignore_index = 2});
}

void add_regression(Cases& cases) {
  const Tensor p = formula(kN, 8) * 10 + 3, t = formula(kN, 9) * 10 + 3;
  const Tensor p2 = p.narrow(0, 0, 60).reshape({30, 2}),
               t2 = t.narrow(0, 0, 60).reshape({30, 2}) * tensor({1.0F, 5.0F});
  cases.add<MeanSquaredError>("mse", p, t);
  cases.add<MeanSquaredError>("rmse", p, t, false);
  cases.add<MeanSquaredError>("mse/outputs", p2, t2, true, ErrorOptions{.num_outputs = 2});
  cases.add<MeanAbsoluteError>("mae", p, t);
  cases.add<R2Score>("r2", p, t);
  cases.add<R2Score>("r2/adjusted", p, t, R2Options{.adjusted = 3});
  cases.add<R2Score>("r2/uniform_average", p2, t2);
  cases.add<R2Score>("r2/raw_values", p2, t2, R2Options{.multioutput = Multioutput::raw_values});
  cases.add<R2Score>("r2/variance_weighted", p2, t2, R2Options{.multioutput = Multioutput::variance_weighted});
  cases.add<MeanMetric>("mean", p, share(1));
  const Tensor tokens = formula(4 * 9 * 11, 10).reshape({4, 9, 11}) * 4, words = classes(11, 11, 36).reshape({4, 9});
  cases.add<Perplexity>("perplexity", tokens, words);
  cases.add<Perplexity>("perplexity/ignore", tokens, where(words.eq(0), -100, words), std::int64_t{-100});
}

}  // namespace

std::vector<MetricCase> metric_cases() {
  Cases cases;
  add_binary(cases);
  add_multiclass(cases);
  add_regression(cases);
  return std::move(cases.list);
}

}  // namespace levin::test
