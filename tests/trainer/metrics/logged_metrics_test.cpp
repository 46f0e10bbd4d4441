// Metrics logged as objects: per step, per epoch, through a checkpoint.
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

constexpr metrics::RankingOptions kThreeClasses{.task = metrics::Task::multiclass, .num_classes = 3};

struct Scored : ToyModule {
  metrics::Accuracy& train_acc = add_metric<metrics::Accuracy>("acc", metrics::StatScoresOptions{.num_classes = 3});
  metrics::AUROC& train_auc = add_metric<metrics::AUROC>("train_auc", kThreeClasses);
  metrics::AUROC& val_auc = add_metric<metrics::AUROC>("val_auc", kThreeClasses);
  std::vector<double> seen_in_hook;
  std::vector<Tensor> scores, targets;  // of the last validation

  StepOutput training_step(const Batch& b, int index) override {
    const Tensor logits = (*this)(b[0]);
    train_acc(logits, b[1]);
    log("acc", train_acc, {.on_step = true, .on_epoch = true});
    train_auc.update(logits, b[1]);
    log("train_auc", train_auc, {.on_step = false, .on_epoch = true});
    return ToyModule::training_step(b, index);
  }
  void on_validation_epoch_start() override {
    scores.clear();
    targets.clear();
  }
  void validation_step(const Batch& b, int) override {
    scores.push_back((*this)(b[0]));
    targets.push_back(b[1]);
    val_auc.update(scores.back(), b[1]);
    log("val_auc", val_auc);
  }
  void on_validation_epoch_end() override { seen_in_hook.push_back(val_auc.value()); }
};

/// All that a run of two epochs has logged.
StateMap metrics_of_run(const std::filesystem::path& saves, const std::string& ckpt) {
  manual_seed(1);
  Scored model;
  data::DataLoader train(toy_points(22), {.batch_size = 4}), val(toy_points(10, 6), {.batch_size = 4});
  auto config = quiet({.max_epochs = 2});
  if (ckpt.empty()) config.callbacks = {std::make_shared<SaveAlways>(saves)};
  Trainer trainer(config);
  trainer.fit(model, train, val, ckpt);
  return trainer.metrics().state();
}

}  // namespace

TEST_CASE("a logged metric covers the whole epoch, is not the mean of its batches, and is reset each epoch") {
  manual_seed(1);
  Scored model;
  data::DataLoader train(toy_points(18), {.batch_size = 4}), val(toy_points(11), {.batch_size = 4});
  Trainer trainer(quiet({.max_epochs = 3}));
  trainer.fit(model, train, val);
  metrics::AUROC whole(kThreeClasses);
  whole.update(cat(model.scores), cat(model.targets));
  CHECK(trainer.metrics().find("val_auc") == whole.value());
  CHECK(model.seen_in_hook.back() == whole.value());
  CHECK(model.val_auc.update_count() == 3);
  CHECK(model.train_acc.update_count() == 5);
  CHECK(trainer.metrics().find("acc_epoch") == model.train_acc.value());
  CHECK(trainer.metrics().find("acc_step") == model.train_acc.last().item<double>());
  for (int again = 0; again < 2; ++again)
    CHECK(trainer.validate(model, val)[0].at("val_auc") == whole.value());
}

TEST_CASE("a checkpoint keeps the state of metrics: resumed anywhere, the run logs the same values bit for bit") {
  const TempDir saves;
  const StateMap wanted = metrics_of_run(saves.path, "");
  int points = 0;
  for (; std::filesystem::exists(saves.path / std::to_string(points)); ++points) {
    CAPTURE(points);
    CHECK(metrics_of_run({}, (saves.path / std::to_string(points)).string()) == wanted);
  }
  CHECK(points == 16);  // two epochs of six batches, a validation and an end
}

TEST_CASE("invalid logging of a metric is refused in one sentence") {
  MetricStore store;
  metrics::Accuracy own({.num_classes = 3}), stranger({.num_classes = 3});
  store.attach({{"own", &own}});
  store.set_scope(MetricStore::Scope::step, Split::train);
  CHECK(contains(message_of<ValueError>([&] { store.log("a", stranger); }), "Make it by add_metric"));
  own.update(tensor<std::int64_t>({0, 1}), tensor<std::int64_t>({0, 2}));
  CHECK(contains(message_of<ValueError>([&] { store.log("a", own); }), "the metric has no value of this step."));
  const LogOptions by_epoch{.on_step = false, .on_epoch = true};
  store.log("a", own, by_epoch);
  CHECK(contains(message_of<ValueError>([&] { store.log("b", own, by_epoch); }), "is logged as \"a\" already"));
  store.finish_epoch(Split::train);
  CHECK(store.find("a") == 0.5);
  Scored model;
  CHECK(contains(message_of<ValueError>([&] { model.add_metric<metrics::MeanMetric>("acc"); }), "\"acc\" already"));
}
