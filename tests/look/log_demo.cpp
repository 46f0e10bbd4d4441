// Trains mnist's mlp briefly and writes every kind of log, for inspection by people, browsers and TensorBoard:
//   levin_log_demo DIR STEPS [stop|continue]
// `stop` leaves the logs of a run in progress, or with STEPS = 0 of one that has not started. `continue` trains nothing
// and appends one record after STEPS to existing logs.
#include <levin/levin.h>

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "examples/mnist/nets.h"

using namespace levin;

namespace {

const std::vector<std::string> kClothes = {"T-shirt", "Trouser", "Pullover", "Dress", "Coat",
                                           "Sandal",  "Shirt",   "Sneaker",  "Bag",   "Boot"};
using Loggers = std::vector<std::shared_ptr<Logger>>;

struct Classifier : LevinModule {
  explicit Classifier(Loggers l) : loggers(std::move(l)) {}
  Loggers loggers;
  nn::Sequential& net = add<nn::Sequential>("net", make_net("mlp"));
  metrics::ConfusionMatrix confusion{{.num_classes = 10}};
  metrics::Accuracy& val_acc = add_metric<metrics::Accuracy>("val_acc", metrics::StatScoresOptions{.num_classes = 10});
  metrics::AUROC& val_auc = add_metric<metrics::AUROC>(
      "val_auc", metrics::RankingOptions{.task = metrics::Task::multiclass, .num_classes = 10});
  std::vector<Tensor> mistakes;

  Tensor forward(const Tensor& x) override { return net(x); }

  StepOutput training_step(const Batch& b, int) override {
    const Tensor logits = net(b[0]), loss = cross_entropy(logits, b[1]);
    log("train_loss", loss, {.prog_bar = true});
    log("train_acc", accuracy(logits, b[1]));
    return loss;
  }
  void on_validation_epoch_start() override {
    confusion.reset();
    mistakes.clear();
  }
  void validation_step(const Batch& b, int) override {
    const Tensor logits = net(b[0]);
    val_acc.update(logits, b[1]);
    val_auc.update(logits, b[1]);
    confusion.update(logits, b[1]);
    log("val_loss", cross_entropy(logits, b[1]));
    log("val_acc", val_acc, {.prog_bar = true});
    log("val_auroc", val_auc);
    const Tensor wrong = nonzero(ne(argmax(logits, 1), b[1]).to(kInt64)).reshape({-1});
    if (mistakes.empty() && wrong.numel() > 0)
      mistakes.push_back(index_select(b[0], 0, wrong.narrow(0, 0, std::min<std::int64_t>(32, wrong.numel()))));
  }
  void on_validation_epoch_end() override {
    const Tensor m = confusion.compute();
    for (const auto& l : loggers) {
      l->log_confusion_matrix("Validation", m, kClothes, global_step());
      if (!mistakes.empty()) l->log_image("Taken for something else", mistakes[0], global_step());
      for (const auto& [name, p] : named_parameters()) l->log_histogram(name, p, global_step());
    }
  }
  void test_step(const Batch& b, int) override { log("test_acc", accuracy(net(b[0]), b[1])); }
  Optimizers configure_optimizers() override {
    return Optimizers(optim::AdamW(parameters(), {.lr = 1e-3}))
        .schedule(
            [this](auto& opt) {
              return optim::OneCycleLR(opt, {.max_lr = 4e-3, .total_steps = estimated_stepping_batches()});
            },
            {.interval = Interval::step});
  }
};

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] {
    if (argc < 3) throw UsageError("levin_log_demo needs DIR and STEPS.");
    const std::filesystem::path dir = argv[1];
    const std::int64_t steps = std::stoll(argv[2]);
    const std::string mode = argc > 3 ? argv[3] : "";
    const bool stop = mode == "stop";
    manual_seed(1);
    const auto report = std::make_shared<HtmlReport>(
        HtmlReportOptions{.file = dir / "report.html", .title = "Fashion-MNIST, two hidden layers of 512"});
    const auto board = std::make_shared<TensorBoardLogger>(
        TensorBoardOptions{.folder = {.save_dir = dir, .name = "tensorboard", .version = 0}});
    const auto lines = std::make_shared<JsonLinesLogger>(dir / "metrics.jsonl");
    const Loggers loggers = {report, board, lines};
    if (mode == "continue") {
      for (const auto& l : loggers) {
        l->resume(steps);
        l->log_metrics({0, steps + 1, {{"train_loss", 0.125}}});
        l->save();
      }
      return 0;
    }
    Classifier model(loggers);
    const DataModule data = data::fashion_mnist({.batch_size = 64});
    const Hyperparameters parameters = {{"model", std::string("mlp")},
                                        {"batch_size", std::int64_t{64}},
                                        {"max_lr", 4e-3},
                                        {"max_steps", steps},
                                        {"optimizer", std::string("AdamW, OneCycleLR")},
                                        {"augment", false}};
    for (const auto& l : loggers) {
      l->log_hyperparams(parameters);
      l->log_model(model);
    }
    board->log_graph(trace_graph(model, model(data.train->begin()->tensors[0])));
    if (steps > 0) {
      TrainerConfig config{.max_epochs = 2,
                           .max_steps = steps,
                           .limit_train_batches = std::min<std::int64_t>(steps, 250),
                           .limit_val_batches = std::int64_t{2},
                           .limit_test_batches = std::int64_t{4},
                           .val_check_interval = std::min<std::int64_t>(steps, 50),
                           .num_sanity_val_steps = 0,
                           .default_root_dir = dir,
                           .log_every_n_steps = 5,
                           .enable_checkpointing = false,
                           .callbacks = {LearningRateMonitor()},
                           .loggers = loggers};
      if (stop) config.callbacks.push_back(LambdaCallback({.on_train_end = [&](RunContext&) {
        for (const auto& l : loggers) l->save();
        std::_Exit(0);
      }}));
      Trainer trainer(config);
      trainer.fit(model, data);
      trainer.test(model, data);
    } else {
      for (const auto& l : loggers) l->save();
    }
    fmt::print("report: {}\n", (dir / "report.html").string());
    return 0;
  });
}
