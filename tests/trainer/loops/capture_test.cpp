// --capture: a fit that replays its steps has the bits of one that does not.

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

/// The toy network, whose step leaves everything on the device.
struct CapturedToy : ToyModule {
  using ToyModule::ToyModule;
  int steps = 0;  ///< calls of training_step
  StepOutput training_step(const Batch& b, int) override {
    ++steps;
    const Tensor logits = (*this)(b[0]);
    const Tensor loss = cross_entropy(logits, b[1]);
    log("train_loss", loss, {.prog_bar = true, .on_step = true, .on_epoch = true});
    log("train_acc", accuracy(logits, b[1]), {.on_epoch = true});
    return {loss, {{"logits", logits}}};
  }
};

/// Records everything that hooks and loggers see.
struct Recorder : Callback {
  std::vector<double> seen;
  std::vector<StepOutput> outputs;
  void on_before_backward(RunContext&, const Tensor& loss) override { seen.push_back(loss.item<double>()); }
  void on_before_optimizer_step(RunContext& run) override {
    for (const Parameter& p : run.module.parameters()) seen.push_back(norm(p.grad()).item<double>());
  }
  void on_train_batch_end(RunContext& run, const StepOutput& out, const Batch&, int) override {
    outputs.push_back(out);
    for (const char* name : {"train_loss_step", "train_acc"})
      if (const auto value = run.metrics.find(name)) seen.push_back(*value);
    for (const double rate : run.learning_rates) seen.push_back(rate);
  }
  void on_train_epoch_end(RunContext& run) override { seen.push_back(*run.metrics.find("train_loss_epoch")); }
};

struct Result {
  std::vector<std::vector<float>> weights, optimizer;
  std::vector<double> seen;
  int steps = 0;
  friend bool operator==(const Result& a, const Result& b) {
    return a.weights == b.weights && a.optimizer == b.optimizer && a.seen == b.seen;
  }
};

/// Fits 45 points in batches of 8, of which the last holds 5.
Result fitted(TrainerConfig config, const ToyOptions& options) {
  manual_seed(3);
  CapturedToy model(options);
  const auto recorder = std::make_shared<Recorder>();
  config.callbacks.emplace_back(recorder);
  config.max_epochs = config.max_epochs.value_or(3);
  Trainer trainer(quiet(std::move(config)));
  Result r;
  data::DataLoader train(toy_points(45), {.batch_size = 8, .shuffle = true});
  data::DataLoader val(toy_points(20, 6), {.batch_size = 8});
  trainer.fit(model, train, val);
  r.weights = values_of(model);
  r.seen = recorder->seen;
  for (const StepOutput& out : recorder->outputs) {  // kept until the end, so replays must not change them
    r.seen.push_back(out.loss().item<double>());
    r.seen.push_back(out.extras().at("logits").sum().item<double>());
  }
  r.steps = model.steps;
  return r;
}

void check_equal(TrainerConfig config, const ToyOptions& options = {}) {
  config.capture = false;
  const Result plain = fitted(config, options);
  config.capture = true;
  const Result captured = fitted(config, options);
  CHECK(captured.weights == plain.weights);
  CHECK(captured.seen.size() == plain.seen.size());
  CHECK(captured.seen == plain.seen);
  CHECK(plain.seen.size() > 50);
  CHECK(plain.steps == 18);
  CHECK(captured.steps <= plain.steps);
}

}  // namespace

TEST_CASE("capture: a fit with AdamW, dropout and a scheduler has the bits of one without") { check_equal({}); }

TEST_CASE("capture: a fit with momentum and clipping has the bits of one without") {
  check_equal({.gradient_clip_val = 0.1}, {.use_sgd = true});
  check_equal({.gradient_clip_val = 0.01, .gradient_clip_algorithm = "value"}, {.use_sgd = true});
}

// With 3 batches in a window, the third adds to gradients that the next window replaces, and is captured anew.
TEST_CASE("capture: accumulation has the bits of a fit without, also with a short last window") {
  check_equal({.accumulate_grad_batches = 2});
  check_equal({.accumulate_grad_batches = 3});
  check_equal({.accumulate_grad_batches = 4});
}

TEST_CASE("capture: mixed precision has the bits of a fit without") {
  check_equal({.precision = "bf16-mixed"});
  check_equal({.precision = "16-mixed"});
}

TEST_CASE("capture: training_step runs twice in an epoch for the batches of one shape, and once for a single one") {
  CHECK(fitted({.capture = true}, {}).steps == 3 * (2 + 1));
  CHECK(fitted({.accumulate_grad_batches = 2, .capture = true}, {}).steps < 18);
  CHECK(fitted({.gradient_clip_val = 0.1, .precision = "16-mixed", .capture = true}, {}).steps == 3 * (2 + 1));
}

TEST_CASE("capture: a resumed fit has the bits of an uninterrupted one, with and without a capture") {
  const TempDir dir;
  const auto run = [&](bool capture, std::int64_t epochs, const std::string& resume, const std::string& save) {
    manual_seed(4);
    CapturedToy model;
    TrainerConfig config = quiet({.max_epochs = epochs, .capture = capture});
    Trainer trainer(config);
    data::DataLoader train(toy_points(45), {.batch_size = 8, .shuffle = true});
    trainer.fit(model, train, {}, resume);
    if (!save.empty()) trainer.save_checkpoint(save);
    return values_of(model);
  };
  const auto whole = run(false, 4, "", "");
  for (const bool first : {false, true})
    for (const bool second : {false, true}) {
      CAPTURE(first);
      CAPTURE(second);
      const std::string folder = (dir.path / (std::to_string(first) + std::to_string(second))).string();
      run(first, 2, "", folder);
      CHECK(run(second, 4, folder, "") == whole);
    }
}

TEST_CASE("capture: what a step cannot do is refused by its name") {
  const auto refused = [](LevinModule& model, TrainerConfig config = {}) {
    config.capture = true;
    config.max_epochs = 1;
    data::DataLoader train(toy_points(32), {.batch_size = 8});
    return message_of<Error>([&] { Trainer(quiet(config)).fit(model, train); });
  };
  ToyModule reads;
  CHECK(contains(refused(reads), "[item] a captured step computes only when it is replayed"));
  struct Logs : CapturedToy {
    StepOutput training_step(const Batch& b, int i) override {
      log("index", i);
      return CapturedToy::training_step(b, i);
    }
  } logs;
  CHECK(contains(refused(logs),
                 "[log] a captured step computes only when it is replayed, so a number of the host would be logged "
                 "again by each replay. Log a tensor."));
  struct Measures : CapturedToy {
    metrics::Accuracy& acc = add_metric<metrics::Accuracy>("acc", metrics::StatScoresOptions{.num_classes = 3});
    StepOutput training_step(const Batch& b, int i) override {
      log("acc", acc, {.on_step = false, .on_epoch = true});
      return CapturedToy::training_step(b, i);
    }
  } measures;
  CHECK(contains(refused(measures), "so a metric would not be updated by replays. Log a tensor, such as accuracy()."));
  CapturedToy manual;
  manual.automatic_optimization = false;
  CHECK(contains(refused(manual), "uses manual optimization, whose steps --capture does not know. Leave it out, or "
                                  "call levin::capture() in training_step."));
  struct Words : LevinModule {
    nn::Embedding& emb = add<nn::Embedding>("emb", 5, 6, nn::EmbeddingOptions{.sparse = true});
    StepOutput training_step(const Batch& b, int) override { return mean(square(emb(b[1]) - b[0])); }
    Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.5}); }
  } words;
  CHECK(contains(refused(words), "[fit] --capture cannot replay the row-wise gradient of \"emb.weight\" (sparse = "
                                 "true). Use sparse = false, or leave --capture out."));
  CapturedToy toy;
  CHECK(contains(refused(toy, {.precision = "16-o2"}),
                 "[fit] --capture cannot replay --precision 16-o2, which steps on its own copy of the weights. Use "
                 "16-mixed or bf16-mixed."));
}
