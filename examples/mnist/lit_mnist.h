#pragma once
// The network with its training, validation and test steps, as a module for the Trainer.

#include "mistakes.h"
#include "nets.h"

struct LitMnist : levin::LevinModule {
  LitMnist(const std::string& model, double lr) : net(add<levin::nn::Sequential>("net", make_net(model))), max_lr(lr) {}

  levin::nn::Sequential& net;
  double max_lr;
  /// Counts of the test set by true and predicted class; `mistakes` holds misclassified images.
  levin::metrics::ConfusionMatrix& confusion = add_metric<levin::metrics::ConfusionMatrix>(
      "confusion", levin::metrics::ConfusionMatrixOptions{.num_classes = 10});
  Mistakes mistakes{10};

  levin::Tensor forward(const levin::Tensor& x) override { return net(x); }

  levin::StepOutput training_step(const levin::Batch& b, int) override {
    const auto loss = cross_entropy(net(b[0]), b[1]);
    log("train_loss", loss, {.prog_bar = true});
    return loss;
  }
  void validation_step(const levin::Batch& b, int) override { evaluate(b, "val"); }
  void test_step(const levin::Batch& b, int) override {
    const auto logits = evaluate(b, "test");
    confusion.update(logits, b[1]);
    mistakes.add(b[0], logits, b[1]);
  }

  levin::Optimizers configure_optimizers() override {
    return levin::Optimizers(levin::optim::AdamW(net.parameters(), {.lr = max_lr / 25}))
        .schedule([this](auto& opt) {
          return levin::optim::OneCycleLR(opt, {.max_lr = max_lr, .total_steps = estimated_stepping_batches()});
        }, {.interval = levin::Interval::step});
  }

 private:
  levin::Tensor evaluate(const levin::Batch& b, const std::string& split) {
    const auto logits = net(b[0]);
    log(split + "_loss", cross_entropy(logits, b[1]), {.sync_dist = true});
    log(split + "_acc", accuracy(logits, b[1]), {.prog_bar = true, .sync_dist = true});
    return logits;
  }
};

/// After the test, gives the confusion matrix and the misclassified images to every logger that takes them.
struct TestReport : levin::Callback {
  explicit TestReport(std::vector<std::string> names) : classes(std::move(names)) {}
  std::vector<std::string> classes;

  void on_test_epoch_end(levin::RunContext& run) override {
    const auto& model = dynamic_cast<const LitMnist&>(run.module);
    auto counts = model.confusion.compute();
    if (run.strategy->data_ranks() > 1) counts = run.strategy->reduce(counts, levin::ReduceOp::sum);
    for (const auto& logger : run.loggers) {
      logger->log_confusion_matrix("Test", counts, classes, run.state.global_step);
      logger->log_image("Test images taken for another class, one row for each true class", model.mistakes.images(),
                        run.state.global_step);
    }
  }
};
